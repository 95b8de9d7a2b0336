import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readSafetyFolder, type RgbImage, SafetyChecker } from '@app/diffusion';
import sharp from 'sharp';
import { readSafetensorsHeader } from '../../libs/diffusion/src/safetensors/safetensors-header';
import { readFloats } from '../../libs/diffusion/src/safetensors/safetensors';
import { BufferSource } from '../../libs/diffusion/src/tensor/byte-source';
import { cpu } from './cpu';
import { unpackFamily } from './families';
import { encodeSafetensors, type TensorToWrite } from './safetensors';

/** Flags nothing, or everything. */
type Threshold = 'never' | 'always';

/** A folder with the tiny safety checker of `test/golden`, whose concepts have other thresholds. */
export async function safetyFolder(threshold: Threshold | Float32Array = 'never'): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-safety-'));
  await unpackFamily('safety', folder);
  const file = join(folder, 'safety_checker/model.safetensors');
  const source = new BufferSource(readFileSync(file));
  const tensors = [...readSafetensorsHeader(source).tensors].map(([name, tensor]) => {
    const values = readFloats(source, tensor);
    const plain = typeof threshold === 'string' ? [threshold === 'always' ? -2 : 2] : threshold;
    const isThreshold = name === 'concept_embeds_weights';
    const changed = isThreshold ? values.map((_, i) => plain[i] ?? plain[0]) : values;
    return [name, { shape: [...tensor.shape], values: changed }] as [string, TensorToWrite];
  });
  writeFileSync(file, encodeSafetensors(Object.fromEntries(tensors)));
  return folder;
}

/** One that flags the first of these pictures and none of the others. */
export async function safetyFolderAgainst(pictures: readonly RgbImage[]): Promise<string> {
  const checker = await SafetyChecker.open(await readSafetyFolder(await safetyFolder('never')), cpu);
  const scores: Float32Array[] = [];
  for (const picture of pictures) scores.push((await checker.scores(picture)).concepts);
  await checker.release();
  const [first, ...others] = scores.map((row) => row.map((score) => score + 2));
  const most = first.map((_, i) => Math.max(...others.map((row) => row[i])));
  const best = first.reduce((at, score, i) => (score - most[i] > first[at] - most[at] ? i : at), 0);
  return safetyFolder(first.map((score, i) => (i === best ? (score + most[i]) / 2 : 2)));
}

/** The pixels of a file. */
export async function pixelsOf(file: Buffer): Promise<RgbImage> {
  const { data, info } = await sharp(file).removeAlpha().raw().toBuffer({ resolveWithObject: true });
  return { width: info.width, height: info.height, data: new Uint8Array(data) };
}
