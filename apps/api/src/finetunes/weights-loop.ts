import { setMaxListeners } from 'node:events';
import { DomainError } from '@app/domain';
import { JsonLogger } from '@app/observability';
import { PollLoop } from '@app/process';
import { RemoteError } from '@app/remote';
import { fatalCount, stopChannel, TaskHold, Tasks, Trainings, type WeightsTask } from '@app/tasks';
import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { Drain } from '../http/drain';
import { Notifications } from '../http/notifications';
import { FetchedWeights } from './fetched-weights.service';

/** Per process. A key has one of them, so that a slow server makes only its own key wait. */
const concurrency = 32;
/** Wait of a file that finds no room at the moment, or no turn. */
const busyDelayMs = 5_000;

/**
 * Fetches weights that requests name by their URL. The tasks are like those of trainings: another process takes over
 * from one that dies, and what passes is tried again.
 */
@Injectable()
export class WeightsLoop implements OnApplicationBootstrap {
  private readonly shutdown = new AbortController();
  /** What ends the tasks under way. */
  private readonly stops = new Map<string, () => void>();
  private readonly loop = new PollLoop(
    () => this.claim(),
    ({ message }) => this.logger.warnSparingly('no weights to fetch could be claimed', { reason: message }),
  );

  constructor(
    private readonly tasks: Tasks,
    private readonly trainings: Trainings,
    private readonly weights: FetchedWeights,
    private readonly logger: JsonLogger,
    notifications: Notifications,
    drain: Drain,
  ) {
    setMaxListeners(0, this.shutdown.signal);
    notifications.on(stopChannel, (id) => this.stops.get(id)?.());
    drain.onBegin(() => this.end());
  }

  onApplicationBootstrap(): void {
    this.loop.start();
  }

  private async claim(): Promise<boolean> {
    if (this.loop.tracked >= concurrency) return false;
    const task = (await this.trainings.claimFetch(false)) ?? (await this.trainings.claimFetch(true));
    if (!task) return false;
    const { id: taskId } = task;
    this.loop.track(
      this.run(task).catch((error: Error) =>
        // Its heartbeats have ended, so the sweep finds it.
        this.logger.error('the outcome could not be written', { taskId }, error),
      ),
    );
    return true;
  }

  private async run(task: WeightsTask): Promise<void> {
    const stops = {
      on: (id: string, stop: () => void) => {
        this.stops.set(id, stop);
        return () => void this.stops.delete(id);
      },
    };
    const hold = new TaskHold(task, this.tasks, stops, this.shutdown.signal, this.logger);
    try {
      await this.weights.fetch(task, hold);
    } catch (error) {
      await this.handle(task, error as Error, hold);
    } finally {
      hold.end();
    }
  }

  private async handle(task: WeightsTask, error: Error, { lost, signal }: TaskHold): Promise<void> {
    const about = { taskId: task.id, attempt: task.attempt, reason: error.message };
    if (lost) return this.logger.log('weights are not fetched: canceled, deleted or taken over', about);
    if (signal.aborted) return void (await this.tasks.release(task));
    const isRemote = error instanceof RemoteError;
    const sentence = isRemote ? `The file at \`weights_url\` ${error.message}.` : error.message;
    const isRefusal = isRemote ? !error.mayPass : error instanceof DomainError && error.kind === 'unprocessable';
    if (isRefusal) return this.fail(task, sentence);
    // No fault of the task, however long it lasts: the disk is full, or the key's room is kept for something else.
    if (error instanceof DomainError) return void (await this.tasks.release(task, { delayMs: busyDelayMs }));
    const tries = task.failures + 1;
    if (tries >= fatalCount)
      return this.fail(task, isRemote ? sentence : `The weights could not be fetched because of an internal error.`);
    if (isRemote) this.logger.log('weights did not come, will be retried', about);
    else this.logger.error('weights could not be fetched, will be retried', about, error);
    await this.tasks.release(task, { delayMs: 1_000 * 2 ** tries, because: 'failed' });
  }

  private async fail(task: WeightsTask, error: string): Promise<void> {
    this.logger.log('weights are not fetched', { taskId: task.id, attempt: task.attempt, reason: error });
    await this.tasks.settle(task, { status: 'failed', error });
  }

  /** Others go on with what is under way. */
  private async end(): Promise<void> {
    await this.loop.stop();
    this.shutdown.abort();
    await this.loop.finished();
  }
}
