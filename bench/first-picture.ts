import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { BenchEngine } from './bench-engine';

/**
 * A process that starts an engine, draws one picture of one step with it, then `--more` pictures in one request, and
 * says how much memory it has taken at most, in bytes: what `bench/sections/start.ts` times, and `memory.ts` weighs.
 */
async function main(): Promise<void> {
  const text = { type: 'string' } as const;
  const { values } = parseArgs({ options: { model: text, threads: text, cache: text, more: text } });
  const engine = await BenchEngine.start({ model: values.model!, threads: Number(values.threads) }, values.cache);
  const more = Number(values.more ?? 0);
  if (more > 0) await engine.draw({ numInferenceSteps: 1, numImages: more });
  process.send?.(peakBytes());
  await engine.close();
}

/** On Linux, `resourceUsage` also counts what the process that started this one had taken. */
function peakBytes(): number {
  if (process.platform !== 'linux') return process.resourceUsage().maxRSS * 1024;
  const [, kibibytes] = /^VmHWM:\s*(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  return Number(kibibytes) * 1024;
}

main().catch((error: Error) => {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
});
