import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type {
  AutoencoderFiles,
  LatentDistribution,
  PicturePlanes,
} from '../../libs/diffusion/src/autoencoders/autoencoder';
import type {
  Conditioner,
  ConditionerFiles,
  Conditioning,
  PictureTexts,
} from '../../libs/diffusion/src/conditioners/conditioner';
import type { Denoiser, DenoiserFiles, DenoiserRow } from '../../libs/diffusion/src/denoisers/denoiser';
import type { Family, ReadFiles } from '../../libs/diffusion/src/families/family';
import type { LatentShape } from '../../libs/diffusion/src/tensor/planes';
import { float32, floatsOf } from '../../libs/diffusion/src/sessions/tensor';
import { type NamedTensors, readValues } from '../../libs/diffusion/src/weights/named-tensor';
import { encodeSafetensors, type TensorToWrite } from './safetensors';

/** Of the latents, and so of a word's meaning. */
const channels = 4;
const spent = { runs: 0, runMs: 0 };
const release = async (): Promise<void> => undefined;

/** Edge of the squares of latents that are one token. */
const patch = 2;
const tokenWidth = channels * patch ** 2;

/** Where the values of each token stand in the latents. */
function tokensOf([, rows, columns]: LatentShape): number[][] {
  const across = columns / patch;
  return Array.from({ length: (rows * columns) / patch ** 2 }, (_, token) => {
    const [top, left] = [patch * Math.floor(token / across), patch * (token % across)];
    const placeOf = (i: number): number =>
      (Math.floor(i / 4) * rows + top + (Math.floor(i / 2) % 2)) * columns + left + (i % 2);
    return Array.from({ length: tokenWidth }, (__, i) => placeOf(i));
  });
}

const product = (matrix: Float32Array, vector: Float32Array): Float32Array =>
  vector.map((_, i) => vector.reduce((sum, value, j) => sum + matrix[i * tokenWidth + j] * value, 0));

/** Linear: the noise is a part of each token, and of the mean of the words. */
function linearDenoiser({ tensors, files }: ReadFiles): DenoiserFiles {
  const own = tensors.get('transformer')!;
  const open = async (): Promise<Denoiser> => {
    const [mix, meaning] = [await readValues(own.get('mix.weight')!), await readValues(own.get('meaning.weight')!)];
    const predicted = ({ sample, conditioning }: DenoiserRow, shape: LatentShape): Float32Array => {
      const words = floatsOf(conditioning.words);
      const meanOf = (channel: number): number =>
        words.reduce((sum, value, i) => sum + (i % channels === channel ? value : 0), 0) / (words.length / channels);
      const meant = product(
        meaning,
        Float32Array.from({ length: tokenWidth }, (_, i) => meanOf(Math.floor(i / patch ** 2))),
      );
      const noise = new Float32Array(sample.length);
      for (const places of tokensOf(shape)) {
        const mixed = product(
          mix,
          Float32Array.from(places, (place) => sample[place]),
        );
        for (const [i, place] of places.entries()) noise[place] = mixed[i] + meant[i];
      }
      return noise;
    };
    return {
      ...{ spent, release },
      inputs: [
        { name: 'sample', type: 'float32', shape: ['batch', channels, 'height', 'width'] },
        { name: 'words', type: 'float32', shape: ['batch', 'tokens', channels] },
      ],
      rowsOfCall: (rows) => rows,
      predict: async (rows, shape) => rows.map((row) => predicted(row, shape)),
    };
  };
  return {
    ...{ part: 'transformer', tensors: own, file: files.get('transformer')!, title: 'linear denoiser' },
    ...{ kind: 'text-to-image', guidance: 'rows', patch, open },
    rowBytes: ({ height, width }) => 8 * channels * height * width,
  };
}

/** Knows only the words of its table. */
function tableOfWords(table: NamedTensors): ConditionerFiles {
  const wordsOf = (text: string): string[] => text.split(' ').filter((word) => table.has(word));
  const chunkTokens = 8;
  const encode = async ({ prompt, negativePrompt }: PictureTexts, isGuided: boolean): Promise<Conditioning> => {
    const rows = (isGuided ? [negativePrompt ?? '', prompt] : [prompt]).map(async (text) => {
      const values = new Float32Array(chunkTokens * channels);
      for (const [i, word] of wordsOf(text).entries()) values.set(await readValues(table.get(word)!), i * channels);
      return { words: float32(values, [chunkTokens, channels]) };
    });
    return { chunks: 1, lengths: rows.map(() => chunkTokens), rows: await Promise.all(rows) };
  };
  const encodeNothing = (): Promise<Conditioning> => encode({ prompt: '' }, false);
  const open = async (): Promise<Conditioner> => ({ spent, release, encode, encodeNothing });
  return {
    ...{ rowTokens: chunkTokens, certainBytes: 0, encoders: [], open },
    lengthOf: (text) => ({
      chunks: 1,
      tokens: wordsOf(text).length,
      ...(wordsOf(text).length > chunkTokens && { problem: `has more than ${chunkTokens} words` }),
    }),
    callBytes: (_, isGuided) => (isGuided ? 2 : 1) * 4 * chunkTokens * channels,
  };
}

/** Pixels of a block that has one colour. */
const block = 4;

/** A colour for each block of pixels: the first channels of its latents, each by its own factor. */
function blocksOfColour({ tensors, files }: ReadFiles): AutoencoderFiles {
  const own = tensors.get('vae')!;
  const factors = () => readValues(own.get('factors')!);
  const decode = async (latents: Float32Array, [, rows, columns]: LatentShape): Promise<PicturePlanes> => {
    const [width, height] = [columns * block, rows * block];
    const of = await factors();
    const planes = Float32Array.from({ length: 3 * width * height }, (_, i) => {
      const [channel, y, x] = [Math.floor(i / width / height), Math.floor(i / width) % height, i % width];
      const place = Math.floor(y / block) * columns + Math.floor(x / block);
      return of[channel] * latents[channel * rows * columns + place];
    });
    return { planes, width, height };
  };
  const encode = async ({ planes, width, height }: PicturePlanes): Promise<LatentDistribution> => {
    const [rows, columns] = [height / block, width / block];
    const of = await factors();
    const mean = Float32Array.from({ length: channels * rows * columns }, (_, i) => {
      const [channel, y, x] = [Math.floor(i / rows / columns), Math.floor(i / columns) % rows, i % columns];
      return channel < 3 ? planes[(channel * height + y * block) * width + x * block] / of[channel] : 0;
    });
    return { shape: [channels, rows, columns], mean };
  };
  return {
    ...{ part: 'vae', tensors: own, file: files.get('vae')!, scaleFactor: block, hasEncoder: true },
    weightsOf: () => own,
    callBytes: ({ width, height }) => 12 * width * height,
    openDecoder: async () => ({ spent, release, latentChannels: channels, decode }),
    openEncoder: async () => ({ release, encode, unscaled: (latents) => latents }),
  };
}

/** A family that nothing else knows. */
export const toyFamily: Family = {
  name: 'toy',
  title: 'the toy family',
  pipelines: /^ToyPipeline$/,
  denoiserPart: 'transformer',
  parts: { vae: 'autoencoder', transformer: 'linear denoiser', text_encoder: 'table of words' },
  nativeSize: 64,
  scheduler: { usual: { _class_name: 'EulerDiscreteScheduler', beta_end: 0.012 }, fixed: {} },
  keptInFloat: /^meaning/,
  recognises: ({ tensors }) => tensors.get('transformer')?.has('mix.weight') === true,
  partsOf: async (read) => ({
    denoiser: linearDenoiser(read),
    conditioner: tableOfWords(read.tensors.get('text_encoder')!),
    autoencoder: blocksOfColour(read),
    cannot: { prompt_weighting: 'A toy knows no weights of words.' },
  }),
};

/** Writes a model with these words. */
export function writeToyModel(folder: string, words: Readonly<Record<string, number[]>>): void {
  const write = (name: string, tensors: Record<string, TensorToWrite>): void => {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), encodeSafetensors(tensors));
  };
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'model_index.json'), JSON.stringify({ _class_name: 'ToyPipeline' }));
  const scaled = (by: number): TensorToWrite => ({
    shape: [tokenWidth, tokenWidth],
    values: Float32Array.from({ length: tokenWidth ** 2 }, (_, i) => (i % (tokenWidth + 1) === 0 ? by : 0)),
  });
  write('transformer/diffusion_pytorch_model.safetensors', { 'mix.weight': scaled(0.5), 'meaning.weight': scaled(1) });
  const table = Object.entries(words).map(([word, values]) => [
    word,
    { shape: [channels], values: Float32Array.from(values) },
  ]);
  write('text_encoder/model.safetensors', Object.fromEntries(table) as Record<string, TensorToWrite>);
  const factors = Float32Array.of(1, 0.9, 0.8);
  write('vae/diffusion_pytorch_model.safetensors', { factors: { shape: [3], values: factors } });
}
