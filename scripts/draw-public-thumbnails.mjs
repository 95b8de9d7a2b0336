import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import sharp from 'sharp';
import { buildIfNeeded, root } from './build.mjs';

/**
 * Draws the thumbnails of the public Collections with the bundled model, from the text and seed in their data file, and
 * writes them beside it: 256 x 256 pixels, 16 colors, a few kB each. Run it after that file or the model has changed. A
 * changed picture gets another URL, because caches may keep the old one for a year.
 */
const folder = join(root, 'apps', 'api', 'src', 'collections', 'public');
const dataFile = join(folder, 'collections.json');
const collections = JSON.parse(readFileSync(dataFile, 'utf8'));
// Drawn at the size that suits the model best, then scaled down.
const drawnEdge = 512;
const edge = 256;

await buildIfNeeded();
const diffusion = (file) => createRequire(import.meta.url)(join(root, 'dist', 'libs', 'diffusion', 'src', file));
const { Pipeline } = diffusion('index.js');
const { readModelDefaults } = diffusion('files.js');
const model = join(root, 'models', 'shapes');
const pipeline = await Pipeline.load(model, { device: 'cpu' });
const { steps, cfg, scheduler } = await readModelDefaults(model);
for (const { name, styles } of collections)
  for (const style of styles) {
    const { images } = await pipeline.generate({
      prompt: style.thumbnail.prompt,
      width: drawnEdge,
      height: drawnEdge,
      numInferenceSteps: steps,
      guidanceScale: cfg,
      scheduler,
      seeds: [style.thumbnail.seed],
    });
    const [{ data, width, height }] = images;
    const file = join(folder, 'thumbnails', `${style.id}.png`);
    const png = await sharp(data, { raw: { width, height, channels: 3 } })
      .resize(edge, edge)
      .png({ palette: true, colours: 16, dither: 0, effort: 10 })
      .toBuffer();
    const changed = !existsSync(file) || !readFileSync(file).equals(png);
    if (changed) {
      writeFileSync(file, png);
      style.token = randomBytes(18).toString('base64url');
    }
    console.log(`${name} / ${style.name}: ${png.length} bytes, ${changed ? 'new' : 'unchanged'}`);
  }
writeFileSync(dataFile, `${JSON.stringify(collections, null, 2)}\n`);
