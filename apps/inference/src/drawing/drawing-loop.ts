import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { type Config, CONFIG } from '@app/config';
import { ClockWatch } from '@app/database';
import type { DrawingTask } from '@app/domain';
import { JsonLogger } from '@app/observability';
import { WakeUps } from '@app/queue';
import { ClaimLoop, Tasks, undrawableAfterMs } from '@app/tasks';
import { type BeforeApplicationShutdown, Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import type { Engine } from '../engine-client/engine';
import { Engines } from '../engine-client/engines';
import { SHUTDOWN_DEADLINE_MS } from '../shutdown-deadline';
import { type DrawingLoan, DrawingService } from './drawing.service';
import { StorageRoom } from '../pictures/storage-room';
import { type Loan, Places } from './places';
import { hasPictures } from './source-pictures';
import { WaitingForPlace } from './waiting-for-place';
import { WorkerModels } from './worker-models';

/** Every eighth claim goes by turn alone, without regard to what is loaded. */
const plainClaim = 8;

/** Claims the next task in turn whenever there is a place for it, and draws it. */
@Injectable()
export class DrawingLoop implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly loop: ClaimLoop;
  private readonly shutdown = new AbortController();
  private readonly waiting: WaitingForPlace;
  private claims = 0;

  constructor(
    private readonly clock: ClockWatch,
    private readonly wakeUps: WakeUps,
    private readonly engines: Engines,
    private readonly tasks: Tasks,
    private readonly drawings: DrawingService,
    private readonly places: Places,
    private readonly models: WorkerModels,
    private readonly room: StorageRoom,
    private readonly logger: JsonLogger,
    @Inject(SHUTDOWN_DEADLINE_MS) private readonly deadlineMs: number,
    @Inject(CONFIG) private readonly config: Config,
  ) {
    // Every task listens, and there are more places than Node expects.
    setMaxListeners(0, this.shutdown.signal);
    this.waiting = new WaitingForPlace(places, () => this.loop.look());
    this.loop = new ClaimLoop(
      () => this.claim(),
      ({ message }) => logger.warnSparingly('no task could be claimed', { reason: message }),
    );
  }

  onApplicationBootstrap(): void {
    if (!this.config.workerKinds.includes('drawing')) return;
    this.wakeUps.listen(() => this.loop.look());
    this.loop.start();
  }

  /** Stops claiming, lets current drawings finish within the deadline, and gives the others back. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.loop.stop();
    this.waiting.stop();
    const finished = this.loop.finished();
    const deadline = new AbortController();
    await Promise.race([finished, delay(this.deadlineMs, undefined, { signal: deadline.signal, ref: false })]);
    deadline.abort();
    this.shutdown.abort();
    await finished;
  }

  /** Claims a task and begins to draw it, so that the next claim sees what is left. */
  private async claim(): Promise<boolean> {
    if (!this.places.hasRoom || !this.clock.agrees || this.engines.isStalled) return false;
    const loan = this.places.borrow();
    if (!loan) return false;
    if (this.waiting.giveTo(loan)) return true;
    if (!(await this.room.isOpen())) return (loan.giveBack(), false);
    let task: DrawingTask | undefined;
    try {
      const wanted = this.wanted();
      task = await this.tasks.claim(wanted);
      if (!task && (await this.tasks.hasTaskForOtherModels(wanted.models))) void this.models.refreshUnlessJustRead();
    } finally {
      if (!task) loan.giveBack();
    }
    if (task && hasPictures(task)) this.beginLater(task, loan);
    else if (task) this.begin(task, loan);
    return task !== undefined;
  }

  private begin(task: DrawingTask, loan: Loan<Engine>): void {
    const leave = this.places.take(task.ownerId);
    const giveBack = (): void => {
      loan.giveBack();
      this.loop.look();
    };
    this.run(task, { ...loan, giveBack }, () => {
      leave();
      giveBack();
    });
  }

  /** Reads its pictures without a place, which a slow address would hold, and draws it when there is one again. */
  private beginLater(task: DrawingTask, claimedWith: Loan<Engine>): void {
    claimedWith.giveBack();
    const loan = this.waiting.enter(task.ownerId);
    this.run(task, loan, () => loan.leave());
  }

  private run(task: DrawingTask, loan: DrawingLoan, end: () => void): void {
    this.loop.begin(
      this.drawings
        .run(task, loan, this.shutdown.signal)
        // Its heartbeats have ended, so the sweep finds it.
        .catch((error: Error) => this.logger.error('the outcome could not be written', { taskId: task.id }, error))
        .finally(end),
    );
  }

  /** Models that the engines with a place free can draw now, and those that they have loaded. */
  private wanted() {
    const { freeDevices, loadedKeys } = this.places;
    // Now and then it is simply the next owner's turn, so that no number of owners whose models are
    // loaded can starve one.
    const isPlain = ++this.claims % plainClaim === 0;
    return {
      except: [...this.places.full, ...this.waiting.full],
      models: this.models.drawableOn(freeDevices),
      loaded: isPlain ? [] : this.models.drawnWith(loadedKeys),
      undrawable: this.clock.contact.heldMs > undrawableAfterMs,
    };
  }
}
