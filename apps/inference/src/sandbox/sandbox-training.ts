import { setTimeout as delay } from 'node:timers/promises';
import { Finetune, readSandboxOrder, type TrainingTask } from '@app/domain';
import { writeSafetensors } from '@app/diffusion';
import type { TaskHold, Trainings } from '@app/tasks';
import type { DataSource } from 'typeorm';
import type { ProgressPublisher } from '../drawing/progress-publisher';
import type { TaskRunner } from '../drawing/task-runner';
import { TaskAbortedError, TaskRefusedError } from '../engine-client/task-errors';
import type { TrainingStore } from '../training/training-store';
import { sandboxName } from './sandbox-engine';

/** How long a training takes where the request does not say, and how many of its steps are published. */
const usualMs = 3_000;
const shownSteps = 20;

/** Ends trainings of sandbox keys after a few seconds, with weights that change nothing: no picture is read. */
export class SandboxTraining {
  constructor(
    private readonly dataSource: DataSource,
    private readonly runner: TaskRunner,
    private readonly trainings: Trainings,
    private readonly store: TrainingStore,
    private readonly progress: ProgressPublisher,
  ) {}

  async run(task: TrainingTask, shutdown: AbortSignal): Promise<void> {
    try {
      await this.runner.run(task, shutdown, (hold) => this.train(task, hold));
    } finally {
      await this.store.removeIfOver(task.id).catch(() => undefined);
    }
  }

  private async train(task: TrainingTask, hold: TaskHold): Promise<void> {
    const { metadata } = await this.dataSource.manager.findOneByOrFail(Finetune, { id: task.id });
    const { order } = readSandboxOrder(metadata);
    await this.pretend(task, order.delayMs || usualMs, hold.signal);
    if (order.fail !== undefined) throw new TaskRefusedError(order.fail);
    const file = await this.store.storeWeights(task, noWeights());
    const weights = { ...file, kind: 'lora' as const, vectors: null, note: null, unmatched: 0, scale: 1, base: null };
    if (await this.trainings.settle(task, { weights, computeSeconds: 0, note: null })) return;
    await this.store.removeAll(file.key);
    hold.lose();
  }

  private async pretend(task: TrainingTask, ms: number, signal: AbortSignal): Promise<void> {
    const publish = this.progress.ofTraining(task);
    const { steps } = task;
    for (let done = 1; done <= shownSteps; done++) {
      const left = task.createdAt.getTime() + (ms * done) / shownSteps - Date.now();
      if (left > 0) await delay(left, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) throw new TaskAbortedError('The training was given up.');
      const step = Math.ceil((steps * done) / shownSteps);
      await this.trainings.recordProgress(task, { step, computeSeconds: 0 }, false);
      publish({ round: 0, step, steps, loss: 0.5 / done });
    }
  }
}

/** A LoRA of one layer that adds nothing to it. */
function noWeights(): Uint8Array {
  const layer = 'unet.mid_block.attentions.0.transformer_blocks.0.attn1.to_q';
  const zeros = (shape: number[]) => ({ shape, values: new Float32Array(4) });
  const factors = new Map([
    [`${layer}.lora_A.weight`, zeros([1, 4])],
    [`${layer}.lora_B.weight`, zeros([4, 1])],
  ]);
  return writeSafetensors(factors, { format: 'pt', note: sandboxName });
}
