import type { Task } from '@app/domain';
import { JsonLogger } from '@app/observability';
import { crashPoint } from '@app/process';
import { TaskHold, Tasks } from '@app/tasks';
import { Injectable } from '@nestjs/common';
import type { Ending } from '../metrics/inference-metrics';
import { FailureService } from './failure.service';
import { StopListener } from './stop-listener';

/** Runs the work on claimed tasks: keeps the claim alive meanwhile, and settles a task whose work fails. */
@Injectable()
export class TaskRunner {
  constructor(
    private readonly tasks: Tasks,
    private readonly stops: StopListener,
    private readonly failures: FailureService,
    private readonly logger: JsonLogger,
  ) {}

  /**
   * @param shutdown aborted when the process has to end: the task is given back
   * @returns how it ended
   * @throws when the outcome cannot be written to the database
   */
  async run(task: Task, shutdown: AbortSignal, work: (hold: TaskHold) => Promise<void>): Promise<Ending> {
    crashPoint('after-claim');
    const hold = new TaskHold(task, this.tasks, this.stops, shutdown, this.logger);
    try {
      await work(hold);
      return 'succeeded';
    } catch (error) {
      return await this.failures.handle(task, error, hold);
    } finally {
      hold.end();
    }
  }
}
