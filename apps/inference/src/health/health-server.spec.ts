import { HealthServer } from './health-server';

describe(HealthServer.name, () => {
  it('names the variable of a port that another program uses', async () => {
    const parts = Array(7).fill({ gauge: () => undefined }) as ConstructorParameters<typeof HealthServer>;
    const [first, second] = [new HealthServer(...parts), new HealthServer(...parts)];
    const port = await first.listen(0, '127.0.0.1');
    await expect(second.listen(port, '127.0.0.1')).rejects.toThrow(`INFERENCE_HEALTH_PORT is ${port}, and another`);
    await first.close();
  });
});
