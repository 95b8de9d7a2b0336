import { cpSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { encodeGraph, encodeNode, encodeWeights } from './picture-graph';

/** The clone, whether this file runs from its source or from what is built of it. */
const root = [2, 3]
  .map((levels) => resolve(__dirname, ...Array.from({ length: levels }, () => '..')))
  .find((folder) => existsSync(join(folder, 'package.json')))!;

const enlargement = 32;
const colours = 3;

/**
 * Makes a folder of models for tests that look at tasks and not at pictures. `shapes` is the bundled model with a decoder of one
 * convolution: a step costs as much as ever, a picture a tenth, since its decoder is most of it. `shapes-bundled` is the bundled model, and not the
 * first of the list, with which the page draws.
 */
export function makeModelsFolder(folder: string): void {
  const bundled = join(root, 'models', 'shapes');
  cpSync(bundled, join(folder, 'shapes-bundled'), { recursive: true });
  const unfinished = join(folder, '.shapes');
  cpSync(bundled, unfinished, { recursive: true });
  const decoder = join(unfinished, 'vae_decoder', 'model.onnx');
  rmSync(decoder);
  const config = readFileSync(join(unfinished, 'vae_decoder', 'config.json'), 'utf8');
  writeFileSync(decoder, encodeDecoder((JSON.parse(config) as { latent_channels: number }).latent_channels));
  renameSync(unfinished, join(folder, 'shapes'));
}

/** Each latent becomes a square of one colour. */
function encodeDecoder(latentChannels: number): Buffer {
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
    { name: 'latent_sample', shape: ['batch', latentChannels, 'height', 'width'] },
    { name: 'sample', shape: ['batch', colours, 'picture height', 'picture width'] },
  );
}
