import { setTimeout as delay } from 'node:timers/promises';
import { Finetune, readSandboxOrder, type TrainingTask } from '@app/domain';
import { writeSafetensors } from '@app/diffusion';
import type { JsonLogger } from '@app/observability';
import type { Tasks, Trainings } from '@app/tasks';
import type { DataSource } from 'typeorm';
import type { FailureService } from '../drawing/failure.service';
import type { ProgressPublisher } from '../drawing/progress-publisher';
import type { StopListener } from '../drawing/stop-listener';
import { TaskHold } from '../drawing/task-hold';
import type { TrainingStore } from '../training/training-store';
import { TaskAbortedError, TaskRefusedError } from '../engine-client/task-errors';
import { sandboxName } from './sandbox-engine';

/** How long a training takes where the request does not say, and how many of its steps are told. */
const usualMs = 3_000;
const toldSteps = 20;

/** Parts of the worker that a sandbox training needs. */
interface Host {
  dataSource: DataSource;
  tasks: Tasks;
  trainings: Trainings;
  store: TrainingStore;
  stops: StopListener;
  progress: ProgressPublisher;
  failures: FailureService;
  logger: JsonLogger;
}

/** Ends trainings of sandbox keys after a few seconds, with weights that change nothing: no picture is read. */
export class SandboxTraining {
  constructor(private readonly host: Host) {}

  async run(task: TrainingTask, shutdown: AbortSignal): Promise<void> {
    const { dataSource, tasks, trainings, store, stops, failures, logger } = this.host;
    const hold = new TaskHold(task, tasks, stops, shutdown, logger);
    try {
      const { metadata } = await dataSource.manager.findOneByOrFail(Finetune, { id: task.id });
      const { order } = readSandboxOrder(metadata);
      await this.pretend(task, order.delayMs || usualMs, hold.signal);
      if (order.fail !== undefined) throw new TaskRefusedError(order.fail);
      const file = await store.storeWeights(task, noWeights());
      const weights = { ...file, kind: 'lora' as const, vectors: null, note: null, scale: 1, base: null };
      if (await trainings.settle(task, { weights, computeSeconds: 0, note: null })) return;
      await store.removeWeights(file.key);
      hold.lose();
    } catch (error) {
      await failures.handle(task, error, hold);
    } finally {
      hold.end();
      await store.removeIfOver(task.id).catch(() => undefined);
    }
  }

  private async pretend(task: TrainingTask, ms: number, signal: AbortSignal): Promise<void> {
    const publish = this.host.progress.ofTraining(task);
    const { steps } = task;
    for (let told = 1; told <= toldSteps; told++) {
      const left = task.createdAt.getTime() + (ms * told) / toldSteps - Date.now();
      if (left > 0) await delay(left, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) throw new TaskAbortedError('The training was given up.');
      const step = Math.ceil((steps * told) / toldSteps);
      await this.host.trainings.advanced(task, { step, computeSeconds: 0 }, false);
      publish({ round: 0, step, steps, loss: 0.5 / told });
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
