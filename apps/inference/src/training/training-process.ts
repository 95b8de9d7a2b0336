import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspectWeights, NotFiniteError, Pipeline, Trainer } from '@app/diffusion';
import { exitWithParent } from '@app/process';
import { failureOf } from '../engine/failure';
import { type PlannedTraining, planTraining } from './plan-training';
import type { TrainingAdvance, TrainingCommand, TrainingMessage } from './training-protocol';

/** Steps between two checkpoints. */
const stepsOfCheckpoint = 50;
/** Samples of a training; each is drawn in few steps, because nobody waits for it. */
const samples = 4;
const sampleSteps = 12;
/** Times that it is trained before it fails, each time with half of the rate. */
const rounds = 2;

type Plan = Extract<TrainingCommand, { type: 'plan' }>;
type Order = Extract<TrainingCommand, { type: 'train' | 'resume' }>;

/** Resolves when the message is on its way: steps block the thread that sends it. */
const send = (message: TrainingMessage): Promise<void> =>
  new Promise((resolve) => void (process.send ? process.send(message, () => resolve()) : resolve()));

class TrainingRun {
  private trainer!: Trainer;
  private round = 0;
  private computeMs = 0;
  private isStopped = false;
  private loss = 0;

  private maySample: boolean;
  /** Loaded for the first sample, and kept for the others. */
  private pipeline?: Pipeline;

  constructor(
    private readonly command: Plan,
    private readonly plan: PlannedTraining,
    private readonly order: Order,
  ) {
    this.maySample = plan.maySample;
  }

  stop(): void {
    this.isStopped = true;
  }

  async run(): Promise<void> {
    const { settings, checkpoint } = this.command;
    const { model, planned, size, form } = this.plan;
    const load = { ...this.load, planned };
    this.trainer = await this.timed(() =>
      this.order.type === 'train'
        ? Trainer.open(model, this.order.pictures, { ...settings, size, form }, load)
        : Trainer.resume(model, checkpoint!, { ...load, form }),
    );
    if (this.order.type === 'resume') this.round = this.order.round;
    else await this.keep();
    for (; ; this.round++) {
      const reason = await this.trainRound();
      if (this.isStopped) {
        await this.keep();
        return send({ type: 'stopped' });
      }
      if (reason === undefined) return this.finish();
      if (this.round + 1 >= rounds)
        return this.refuse(`It was trained ${rounds} times, and each time was no use. ${reason}`);
      this.trainer.startOver();
    }
  }

  /** @returns why it is of no use, if it is not. */
  private async trainRound(): Promise<string | undefined> {
    try {
      while (!this.trainer.done && !this.isStopped) {
        const { step, loss } = await this.timed(() => this.trainer.step());
        this.loss = loss;
        await send({ type: 'stepped', ...this.advance });
        if (step % stepsOfCheckpoint === 0) await this.keep();
        const { steps } = this.trainer.settings;
        if (this.maySample && step < steps && step % Math.ceil(steps / samples) === 0) await this.trySample();
        // Messages are read between two steps.
        await new Promise(setImmediate);
      }
      if (this.isStopped) return undefined;
      const { passed, reason } = await this.timed(() => this.trainer.gate());
      return passed ? undefined : (reason ?? 'It did not learn.');
    } catch (error) {
      if (error instanceof NotFiniteError) return 'The loss is no longer a number.';
      throw error;
    }
  }

  private get load() {
    const { device, intraOpNumThreads } = this.command;
    // Spinning threads would take the processor from drawings.
    return { device, intraOpNumThreads, spinUs: 0 };
  }

  private get advance(): TrainingAdvance {
    const { stepIndex: step, settings } = this.trainer;
    return { round: this.round, step, steps: settings.steps, loss: this.loss, computeMs: this.computeMs };
  }

  private keep(): Promise<void> {
    return send({ type: 'kept', ...this.advance, checkpoint: this.trainer.checkpoint() });
  }

  /** Samples are only to be looked at: after an error there are no more of them, and the training goes on. */
  private async trySample(): Promise<void> {
    try {
      await this.sample();
    } catch {
      this.maySample = false;
      await this.pipeline?.release().catch(() => undefined);
      this.pipeline = undefined;
    }
  }

  /** Draws a prompt that is always the same. */
  private async sample(): Promise<void> {
    const { size, seed } = this.trainer.settings;
    const pipeline = (this.pipeline ??= await Pipeline.load(this.command.model.folder, this.load));
    const adapters = [{ adapter: this.trainer.adapter(), scale: 1 }];
    const request = { prompt: this.order.samplePrompt, guidanceScale: 5, seeds: [seed], adapters };
    const { images } = await this.timed(() =>
      pipeline.generate({ ...request, numInferenceSteps: sampleSteps, width: size, height: size }),
    );
    await send({ type: 'sampled', image: images[0] });
  }

  /** The weights are read as uploaded ones are, so that they are known to be of use. */
  private async finish(): Promise<void> {
    const { model, drawn = model } = this.command;
    const weights = this.trainer.weights(this.order.metadata);
    const folder = await mkdtemp(join(tmpdir(), 'darkroom-weights-'));
    try {
      const file = join(folder, 'weights.safetensors');
      await writeFile(file, weights);
      const { kind, tokens: vectors = null, note = null } = await inspectWeights(file, drawn.folder);
      await send({ type: 'done', weights, kind, vectors, note, computeMs: this.computeMs });
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  private refuse(message: string): Promise<void> {
    return send({ type: 'failed', failure: 'refused', message });
  }

  private async timed<T>(work: () => Promise<T>): Promise<T> {
    const startedAt = performance.now();
    try {
      return await work();
    } finally {
      this.computeMs += performance.now() - startedAt;
    }
  }
}

function serve(): void {
  exitWithParent();
  let begun: { command: Plan; plan: PlannedTraining } | undefined;
  let run: TrainingRun | undefined;
  let fail: (error: unknown) => void;
  process.on('message', (command: TrainingCommand) => {
    if (command.type === 'stop') run?.stop();
    else if (command.type === 'plan') {
      const { model } = command;
      fail = (error) => void send({ type: 'failed', ...failureOf(error, { model, adapters: [] }) });
      planTraining({ ...command, folder: model.folder }).then((found) => {
        begun = { command, plan: found };
        void send({ type: 'planned', size: found.size, bytes: found.bytes, note: found.note });
      }, fail);
    } else if (begun) {
      run = new TrainingRun(begun.command, begun.plan, command);
      run.run().catch(fail);
    }
  });
  // While the channel is open the process stays alive.
  process.channel?.ref();
  void send({ type: 'ready' });
}

serve();
