import { RemoteSessions } from './remote-sessions';

describe(RemoteSessions.name, () => {
  it('is not busy with what could not be sent to its thread', async () => {
    let sessions!: RemoteSessions;
    // There is no compiled thread beside the sources, so it ends by itself.
    const lost = new Promise<Error>((resolve) => (sessions = new RemoteSessions('A lane', resolve)));
    const options = { logId: (() => 'no data') as unknown as string };
    await expect(sessions.open({ type: 'openFile', file: 'any.onnx', options })).rejects.toThrow('could not be cloned');
    expect(sessions.isBusy).toBe(false);
    expect((await lost).message).toMatch(/^A lane of the engine ended/);
  });
});
