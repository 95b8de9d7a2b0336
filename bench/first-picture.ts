import { parseArgs } from 'node:util';
import { BenchEngine } from './bench-engine';

/** A process that starts an engine, draws one picture of one step with it, and says so: what `bench/sections/start.ts` times. */
async function main(): Promise<void> {
  const options = { model: { type: 'string' }, threads: { type: 'string' }, cache: { type: 'string' } } as const;
  const { values } = parseArgs({ options });
  const engine = await BenchEngine.start({ model: values.model!, threads: Number(values.threads) }, values.cache);
  process.send?.('drawn');
  await engine.close();
}

main().catch((error: Error) => {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
});
