import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { countOf, type ModelFolder, type NamedTensor, readModelFolder } from '@app/diffusion';
import { encodeBfloat16, encodeFloat16 } from '../../libs/diffusion/src/tensor/half';
import { withDiffusersNames } from '../../libs/diffusion/src/weights/original-names';
import { unpackFolder, unpackTransformerModel } from '../../test/support/families';
import { keptValues, normalValues, step } from '../full-size-model';

export type ModelName = 'sd15' | 'sdxl' | 'klein' | 'z-image';
export type ModelSize = 'full' | 'tiny';

/** Where models are made, and how large. */
export interface Making {
  size: ModelSize;
  /** Folder of the values, and of the models' small files. */
  weights: string;
}

interface RecordedPart {
  config: Readonly<Record<string, unknown>>;
  shapes: Readonly<Record<string, readonly number[]>>;
}

type Recorded = Record<ModelSize, Record<ModelName, Record<string, RecordedPart>>>;

/** Written by record.py. */
const recorded = JSON.parse(gunzipSync(readFileSync(join(__dirname, 'models.json.gz'))).toString()) as Recorded;

type HalfType = 'F16' | 'BF16';
const encoders = { F16: encodeFloat16, BF16: encodeBfloat16 };
const typeOf = (name: ModelName): HalfType => (name.startsWith('sd') ? 'F16' : 'BF16');
const sources: Record<ModelName, (folder: string) => Promise<void>> = {
  sd15: (folder) => unpackFolder('test/golden/families/sd15/model', folder),
  sdxl: (folder) => unpackFolder('test/golden/families/sdxl/model', folder),
  klein: (folder) => unpackTransformerModel('flux2-klein', folder),
  'z-image': (folder) => unpackTransformerModel('z-image-turbo', folder),
};

/** Values of one spread: 0, 1, or random ones of the variance 2^-power, so that activations keep their size. */
type Region = 'zeros' | 'ones' | number;

function regionOf(name: string, [, ...inputs]: readonly number[]): Region {
  if (inputs.length > 0) return Math.round(Math.log2(countOf(inputs)));
  return /(?:weight|running_var)$/.test(name) ? 'ones' : 'zeros';
}

/** Where the regions of a file begin, in values: tensors overlap in them, so that 36 GB of weights take 1.3. */
function layoutOf(size: ModelSize, type: HalfType) {
  const lengths = new Map<Region, number>();
  for (const [model, parts] of Object.entries(recorded[size]))
    if (typeOf(model as ModelName) === type)
      for (const { shapes } of Object.values(parts))
        for (const [name, shape] of Object.entries(shapes)) {
          const region = regionOf(name, shape);
          lengths.set(region, Math.max(lengths.get(region) ?? 0, countOf(shape) + keptValues));
        }
  let end = 0;
  return new Map([...lengths].map(([region, length]) => [region, { begin: end, end: (end += length) }]));
}

const valuesFile = ({ weights, size }: Making, type: HalfType): string => join(weights, `${size}-${type}.bin`);

/** Writes the values of all models of a size. Larger than a model's largest tensors, and far smaller than a model. */
export async function writeValues(making: Making): Promise<void> {
  const drawn = normalValues();
  for (const type of ['F16', 'BF16'] as const) {
    const path = valuesFile(making, type);
    const file = await open(`${path}.part`, 'w');
    for (const [region, { begin, end }] of layoutOf(making.size, type)) {
      const spread = typeof region === 'number' ? 2 ** (-region / 2) : 0;
      const values = region === 'ones' ? drawn.map(() => 1) : drawn.map((value) => spread * value);
      const bytes = new Uint8Array(encoders[type](values).buffer);
      for (let left = 2 * (end - begin); left > 0; left -= bytes.length)
        await file.writeFile(bytes.subarray(0, Math.min(left, bytes.length)));
    }
    await file.close();
    renameSync(`${path}.part`, path);
  }
}

/** A model of random weights, which lie in the values of `writeValues`; its tokenizer is a test's. */
export async function modelOf(name: ModelName, making: Making): Promise<ModelFolder> {
  const parts = Object.entries(recorded[making.size][name]);
  const path = join(making.weights, `${making.size}-${name}`);
  if (!existsSync(path)) {
    const unfinished = `${path}.${process.pid}`;
    await sources[name](unfinished);
    for (const [part, { config }] of parts) {
      rmSync(join(unfinished, part), { recursive: true, force: true });
      mkdirSync(join(unfinished, part));
      writeFileSync(join(unfinished, part, 'config.json'), JSON.stringify(config));
    }
    renameSync(unfinished, path);
  }
  const type = typeOf(name);
  const [file, layout] = [valuesFile(making, type), layoutOf(making.size, type)];
  const tensors = parts.map(([part, { shapes }]) => {
    const placed = Object.entries(shapes).map(([key, shape], i): [string, NamedTensor] => {
      const offset = 2 * (layout.get(regionOf(key, shape))!.begin + ((i * step) % keptValues));
      return [key, { name: key, type, shape, file, offset }];
    });
    return [part, withDiffusersNames(part, new Map(placed))] as const;
  });
  const files = new Map(parts.map(([part]) => [part, file]));
  return readModelFolder(path, { tensors: new Map(tensors), files, isCheckpoint: false, marks: new Set() });
}
