/**
 * Draws with a model folder in a process of its own. Prints as JSON the estimates, and how many bytes the memory has
 * grown since the model was loaded: after two calls of the denoiser with each number of rows, and after decoding two
 * pictures.
 * node measure-memory.cjs FOLDER WIDTH HEIGHT ROWS…
 */
const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const { Pipeline } = require(join(__dirname, '../../dist/libs/diffusion/src'));

const anonymousBytes = () => 1024 * Number(/RssAnon:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1]);

async function main([folder, width, height, ...rows]) {
  const pipeline = await Pipeline.load(folder, { device: 'cpu', intraOpNumThreads: 2, spinUs: 0 });
  const size = { width: Number(width), height: Number(height) };
  const before = anonymousBytes();
  const calls = [];
  let trajectories;
  for (const count of rows.map(Number)) {
    trajectories = await pipeline.prepare({
      ...size,
      prompt: 'a red circle',
      numInferenceSteps: 3,
      guidanceScale: 7.5,
      seeds: Array.from({ length: count / 2 }, (_, seed) => seed),
    });
    for (let call = 0; call < 2; call++) await pipeline.step(trajectories);
    calls.push(anonymousBytes() - before);
  }
  const bytes = pipeline.bytesOf(trajectories[0]);
  const drawn = anonymousBytes();
  for (let call = 0; call < 2; call++) await pipeline.decode(trajectories[0]);
  process.stdout.write(JSON.stringify({ bytes, calls, decoded: anonymousBytes() - drawn }));
  await pipeline.release();
}

void main(process.argv.slice(2));
