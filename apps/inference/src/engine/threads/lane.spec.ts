import { Lane } from './lane';

describe(Lane.name, () => {
  it('is not busy with what could not be sent to its thread', async () => {
    let lane!: Lane;
    // There is no compiled thread beside the sources, so it ends by itself.
    const lost = new Promise<Error>((resolve) => (lane = new Lane('A lane', resolve)));
    const options = { logId: (() => 'no data') as unknown as string };
    await expect(lane.open({ type: 'openFile', file: 'any.onnx', options })).rejects.toThrow('could not be cloned');
    expect(lane.isBusy).toBe(false);
    expect((await lost).message).toMatch(/^A lane of the engine ended/);
  });
});
