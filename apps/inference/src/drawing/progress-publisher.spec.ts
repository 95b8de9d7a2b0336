import type { StepMessage } from '@app/tasks';
import { JsonLogger } from '@app/observability';
import type { DataSource } from 'typeorm';
import { ProgressPublisher } from './progress-publisher';

class FakeDataSource {
  readonly told: StepMessage[] = [];

  async query(_sql: string, [, payload]: [string, string]): Promise<void> {
    this.told.push(JSON.parse(payload) as StepMessage);
  }
}

describe(ProgressPublisher.name, () => {
  it.each([
    ['a scheduler that calls the U-Net once more than there are steps', 5],
    ['one that calls it twice a step', 7],
  ])('tells steps of those that were asked for: %s', (_, calls) => {
    const dataSource = new FakeDataSource();
    const publisher = new ProgressPublisher(dataSource as unknown as DataSource, new JsonLogger('test', 'silent'));
    const report = publisher.of({ id: 'task', attempt: 2, steps: 4 });
    for (let step = 1; step <= calls; step++) report({ step, total: calls });
    expect(dataSource.told[0]).toEqual({ id: 'task', attempt: 2, step: 1, total: 4 });
    expect(dataSource.told.at(-1)).toEqual({ id: 'task', attempt: 2, step: 4, total: 4 });
  });
});
