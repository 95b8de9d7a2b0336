import { BenchEngine } from './bench-engine';
import type { BenchOptions } from './section';

/** The process of `firstPictureMs`. */
async function main(): Promise<void> {
  const [model, device, threads] = process.argv.slice(2);
  const engine = await BenchEngine.start({ model, device: device as BenchOptions['device'], threads: Number(threads) });
  process.send?.('drawn');
  await engine.close();
}

main().catch((error: Error) => {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
});
