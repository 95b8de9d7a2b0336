import { cpSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { encodeGraph, encodeIntegers, encodeNode, encodeWeights } from './onnx';

const enlargement = 32;
const colours = 3;
/**
 * Channels between the U-Net's two convolutions: with so many, a step takes milliseconds, and a fault finds a picture
 * being drawn.
 */
const hiddenChannels = 512;

/** A folder of models in the one that `makeModelsFolder` makes. */
const trainable = '.trainable';

/**
 * Where the run's only model is one that takes LoRA, and takes as long as ever for its steps, so that pictures are seen
 * being drawn. Only its decoder is quick.
 */
export const trainableModels = (): string => join(process.env.TEST_MODELS_DIR!, trainable);

/**
 * Makes a folder of models for tests that look at tasks and not at pictures. `shapes` is the bundled model with a U-Net
 * of two convolutions and a decoder of one: it loads in an instant, and draws in a fraction of the time. It takes no
 * LoRA. `shapes-bundled` is the bundled model, and not the first of the list, with which the page draws by default.
 */
export function makeModelsFolder(folder: string): void {
  const quick = { unet: encodeUnet, vae_decoder: encodeDecoder };
  copyBundled(join(folder, trainable), { vae_decoder: encodeDecoder });
  copyBundled(folder, {}, 'shapes-bundled');
  copyBundled(folder, quick);
}

type Encode = (config: Record<string, number>) => Buffer;

/** Copies the bundled model, with other graphs for some parts. */
function copyBundled(folder: string, parts: Record<string, Encode>, name = 'shapes'): void {
  const unfinished = join(folder, `.${name}`);
  cpSync(resolve('models', 'shapes'), unfinished, { recursive: true });
  for (const [part, encode] of Object.entries(parts)) {
    const config = JSON.parse(readFileSync(join(unfinished, part, 'config.json'), 'utf8')) as Record<string, number>;
    // A new file: the copy may be a link.
    rmSync(join(unfinished, part, 'model.onnx'));
    writeFileSync(join(unfinished, part, 'model.onnx'), encode(config));
  }
  renameSync(unfinished, join(folder, name));
}

/** Noise that depends on all that a U-Net is given. */
function encodeUnet({ in_channels: channels, cross_attention_dim: width }: Record<string, number>): Buffer {
  return encodeGraph(
    [
      encodeNode('Conv', ['sample', 'first'], 'wide', { pads: [1, 1, 1, 1] }),
      encodeNode('Tanh', ['wide'], 'bent'),
      encodeNode('Conv', ['bent', 'second'], 'noise', { pads: [1, 1, 1, 1] }),
      encodeNode('ReduceMean', ['encoder_hidden_states'], 'meaning', { axes: [1] }),
      encodeNode('MatMul', ['meaning', 'words'], 'tints'),
      encodeNode('Reshape', ['tints', 'a value per channel'], 'tint'),
      encodeNode('Reshape', ['timestep', 'a value per row'], 'time'),
      encodeNode('Mul', ['time', 'pace'], 'shade'),
      encodeNode('Add', ['noise', 'tint'], 'tinted'),
      encodeNode('Add', ['tinted', 'shade'], 'shaded'),
      encodeNode('Tanh', ['shaded'], 'out_sample'),
    ],
    [
      encodeWeights('first', [hiddenChannels, channels, 3, 3], (index) => Math.sin(1 + index) / 8),
      encodeWeights('second', [channels, hiddenChannels, 3, 3], (index) => Math.cos(1 + index) / 16),
      encodeWeights('words', [width, channels], (index) => Math.sin(index) / 4),
      encodeWeights('pace', [1], () => 1e-3),
      encodeIntegers('a value per channel', [-1, channels, 1, 1]),
      encodeIntegers('a value per row', [-1, 1, 1, 1]),
    ],
    [
      { name: 'sample', shape: ['batch', channels, 'height', 'width'] },
      { name: 'timestep', shape: ['batch'] },
      { name: 'encoder_hidden_states', shape: ['batch', 'tokens', width] },
    ],
    { name: 'out_sample', shape: ['batch', channels, 'height', 'width'] },
  );
}

/** Each latent becomes a square of one colour. */
function encodeDecoder({ latent_channels: latentChannels }: Record<string, number>): Buffer {
  const channels = colours * enlargement ** 2;
  // Of the channels that become one square, every third has the same colour.
  const weight = (index: number): number => {
    const [output, input] = [Math.floor(index / latentChannels), index % latentChannels];
    return Math.sin(1 + (output % colours) + colours * input) / 2;
  };
  return encodeGraph(
    [
      encodeNode('Conv', ['latent_sample', 'w'], 'squares'),
      encodeNode('DepthToSpace', ['squares'], 'sample', {}, { blocksize: enlargement }),
    ],
    [encodeWeights('w', [channels, latentChannels, 1, 1], weight)],
    [{ name: 'latent_sample', shape: ['batch', latentChannels, 'height', 'width'] }],
    { name: 'sample', shape: ['batch', colours, 'picture height', 'picture width'] },
  );
}
