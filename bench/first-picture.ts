import { readFileSync } from 'node:fs';
import { placesOfEngine } from '../apps/inference/src/engines/engines';
import { BenchEngine, type FurtherDrawings } from './bench-engine';
import type { BenchOptions } from './section';

/** The process of `firstPicture`, which says how much memory it has taken at most. */
async function main(): Promise<void> {
  const [model, device, threads, more] = process.argv.slice(2);
  const options = { model, device: device as BenchOptions['device'], threads: Number(threads) };
  const { request = {}, pictures = 0, adapters = [] } = JSON.parse(more) as FurtherDrawings;
  const ofOneStep = { ...request, numInferenceSteps: 1 };
  const engine = await BenchEngine.start(options, request);
  if (pictures > 0) await engine.draw({ ...ofOneStep, numImages: pictures });
  const left = [...adapters];
  const drawLeft = async (): Promise<void> => {
    for (let own = left.shift(); own; own = left.shift()) await engine.draw(ofOneStep, { adapters: own });
  };
  await Promise.all(Array.from({ length: placesOfEngine }, drawLeft));
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
