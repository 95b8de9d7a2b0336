import { availableParallelism, cpus } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { env } from 'onnxruntime-node';

/** What figures were taken on; nothing of it names a machine or a place on it. */
export interface Machine {
  processor: string;
  cores: number;
  platform: string;
  node: string;
  onnxruntime: string;
}

export function thisMachine(): Machine {
  return {
    processor: cpus()[0].model.trim(),
    cores: availableParallelism(),
    platform: `${process.platform} ${process.arch}`,
    node: process.versions.node,
    onnxruntime: env.versions.node ?? env.versions.common,
  };
}

/** How long is watched what other programs do. */
const watchMs = 1000;

/** The share of the processors' time, 0 to 1, that is taken while this program waits. */
export async function busyShare(): Promise<number> {
  const before = times();
  await delay(watchMs);
  const after = times();
  return 1 - (after.idle - before.idle) / (after.all - before.all);
}

function times(): { idle: number; all: number } {
  const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0);
  const each = cpus();
  return { idle: sum(each.map((cpu) => cpu.times.idle)), all: sum(each.flatMap((cpu) => Object.values(cpu.times))) };
}
