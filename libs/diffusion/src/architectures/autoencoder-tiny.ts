/**
 * diffusers' `models/autoencoders/autoencoder_tiny.py` and `vae.py`: a small autoencoder, for quick looks at latents.
 */
import type { Value } from '../graph/graph';
import { conv, relu } from '../graph/layers';
import { type BuiltGraph, Module, type ModuleOptions } from '../graph/module';
import { WeightsFileError } from '../weights/named-tensor';
import { upsample2D } from './blocks';

/** `latent_sample` [batch, channels, height, width], as the encoder gives it, to `sample`, from -1 to 1. */
export function autoencoderTinyDecoder(options: ModuleOptions): BuiltGraph {
  const m = Module.of(options);
  const layers = m.at('decoder.layers');
  const latents = m.input('latent_sample', ['batch', layers.shape('0.weight')[1], 'height', 'width']);
  const clamped = m.mul(m.op('Tanh', [m.op('Div', [latents, m.number(3)])]), m.number(3));
  // Layers without weights: an activation after the first convolution, and then all that double the size.
  const x = run(layers, clamped, (y, i) => (i === 1 ? relu(m, y) : upsample2D(layers.at(i), y)));
  m.output('sample', m.op('Sub', [m.mul(x, m.number(2)), m.number(1)]), ['batch', 'channels', 'rows', 'columns']);
  return m.finish();
}

/** `sample` [batch, 3, height, width] from -1 to 1 to `latents`. */
export function autoencoderTinyEncoder(options: ModuleOptions): BuiltGraph {
  const m = Module.of(options);
  const layers = m.at('encoder.layers');
  const sample = m.input('sample', ['batch', layers.shape('0.weight')[1], 'height', 'width']);
  const x = run(layers, m.op('Div', [m.add(sample, m.number(1)), m.number(2)]), (y) => y);
  m.output('latents', x, ['batch', 'channels', 'rows', 'columns']);
  return m.finish();
}

/** The layers one after another; `bare` is what those without weights do. */
function run(layers: Module, x: Value, bare: (x: Value, i: number) => Value): Value {
  const last = Math.max(...layers.weightNames().map((name) => Number(/^(\d+)\./.exec(name)?.[1] ?? 0)));
  // Beside each layer without weights stands one that has some.
  if (last >= 2 * layers.weightNames().length)
    throw new WeightsFileError(`The weights have ${layers.path}.${last}, and not what stands before it.`);
  for (let i = 0; i <= last; i++) {
    const layer = layers.at(i);
    if (layer.has('conv')) x = autoencoderTinyBlock(layer, x);
    else if (layer.has('weight')) x = conv(layers, x, `${i}`, { stride: isHalving(layer) ? 2 : 1 });
    else x = bare(x, i);
  }
  return x;
}

/** In the encoder only the convolutions that halve the size have no bias. */
const isHalving = (layer: Module): boolean => layer.path.startsWith('encoder.') && !layer.has('bias');

function autoencoderTinyBlock(m: Module, x: Value): Value {
  const y = relu(m, conv(m, relu(m, conv(m, x, 'conv.0')), 'conv.2'));
  return relu(m, m.add(conv(m, y, 'conv.4'), m.has('skip') ? conv(m, x, 'skip') : x));
}
