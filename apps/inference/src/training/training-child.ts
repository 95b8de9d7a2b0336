import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { startChild } from '@app/process';
import { TaskAbortedError, EngineLostError, failureError } from '../engine-client/task-errors';
import type { TrainingCommand, TrainingMessage, TrainingPlan } from './training-protocol';

/** Added to the worker's nice value: a drawing beside it hardly becomes slower. */
const niceness = 10;
/** Environment variables that it gets beside those of every child. */
const passed = ['CUDA_VISIBLE_DEVICES', 'CUDA_DEVICE_ORDER'];

/** A process that trains one Fine-Tune, as the worker sees it. */
export class TrainingChild {
  /** Compiled entry of the process; tests name the one in `dist`. */
  static processFile = join(__dirname, 'training-process.js');

  private readonly process: ChildProcess;
  private handle: (message: TrainingMessage) => void = () => undefined;
  private readonly ended: Promise<never>;
  private readonly ready: Promise<unknown>;
  private isTraining = false;

  /** @param signal ends it at once. */
  constructor(private readonly signal: AbortSignal) {
    const { process: child, stderr } = startChild({
      file: TrainingChild.processFile,
      niceness,
      passed,
      // A step allocates the same again and again: memory that went back to the system would have to be mapped anew.
      env: { MALLOC_MMAP_THRESHOLD_: '4294967296', MALLOC_TRIM_THRESHOLD_: '17179869184' },
    });
    this.process = child;
    this.ended = new Promise((_, reject) => {
      this.process.once('close', (code, killed) => {
        this.signal.removeEventListener('abort', this.kill);
        const how = `${killed ?? `exit code ${code}`} ${stderr()}`.trim();
        reject(
          this.signal.aborted
            ? new TaskAbortedError('The training was given up.')
            : new EngineLostError(`The process that trains ended: ${how}`),
        );
      });
    });
    this.ended.catch(() => undefined);
    this.process.on('message', (message: TrainingMessage) => this.handle(message));
    this.ready = this.message('ready');
    // It may be killed before anybody asks it to plan.
    this.ready.catch(() => undefined);
    signal.addEventListener('abort', this.kill, { once: true });
    if (signal.aborted) this.kill();
  }

  /**
   * @throws TaskRefusedError if the model cannot be trained here; EngineBrokenError, EngineLostError, TaskAbortedError
   */
  async plan(command: Omit<Extract<TrainingCommand, { type: 'plan' }>, 'type'>): Promise<TrainingPlan> {
    await this.ready;
    this.send({ type: 'plan', ...command });
    return this.message('planned');
  }

  /**
   * Trains, or goes on.
   * @param onMessage called with all that happens on the way.
   * @throws TaskRefusedError, EngineBrokenError, EngineLostError; TaskAbortedError also after `stop`
   */
  async train(
    command: Extract<TrainingCommand, { type: 'train' | 'resume' }>,
    onMessage: (message: TrainingMessage) => void,
  ): Promise<Extract<TrainingMessage, { type: 'done' }>> {
    this.isTraining = true;
    this.send(command);
    return this.message('done', onMessage);
  }

  /** Lets it end after its step, with a checkpoint. False: it does not train yet, so there is nothing to wait for. */
  stop(): boolean {
    if (this.isTraining) this.send({ type: 'stop' });
    return this.isTraining;
  }

  readonly kill = (): void => void this.process.kill('SIGKILL');

  /** The next message of a type. A failure is thrown. */
  private message<T extends TrainingMessage['type']>(
    type: T,
    onMessage: (message: TrainingMessage) => void = () => undefined,
  ): Promise<Extract<TrainingMessage, { type: T }>> {
    const received = new Promise<Extract<TrainingMessage, { type: T }>>((resolve, reject) => {
      this.handle = (message) => {
        onMessage(message);
        if (message.type === type) resolve(message as Extract<TrainingMessage, { type: T }>);
        else if (message.type === 'stopped') reject(new TaskAbortedError('The process has to end.'));
        else if (message.type === 'failed') reject(failureError({ ...message, id: 0 }));
      };
    });
    return Promise.race([received, this.ended]);
  }

  private send(command: TrainingCommand): void {
    // If the process is gone by now, `ended` rejects next.
    if (this.process.connected) this.process.send(command, () => undefined);
  }
}
