import { encodeGraph, encodeNode, encodeWeights, type InitializerToWrite } from './onnx';

/**
 * The bytes of an upscaler with ESRGAN's interface: two 3 x 3 convolutions with fixed, random-looking weights; the
 * second's channels are rearranged to twice the size.
 * @param edge of the only tile size it accepts; any size if not given
 */
export function encodeUpscaler(edge?: number): Buffer {
  return encodeGraph(
    [
      encodeNode('Conv', ['x', 'w1'], 'features', { pads: [1, 1, 1, 1] }),
      encodeNode('Relu', ['features'], 'active'),
      encodeNode('Conv', ['active', 'w2'], 'channels', { pads: [1, 1, 1, 1] }),
      encodeNode('DepthToSpace', ['channels'], 'y', {}, { blocksize: 2 }),
    ],
    [randomWeights('w1', [8, 3, 3, 3], 1), randomWeights('w2', [12, 8, 3, 3], 2)],
    [{ name: 'x', shape: [1, 3, edge ?? 'height', edge ?? 'width'] }],
    { name: 'y', shape: [1, 3, edge ? 2 * edge : 'enlarged height', edge ? 2 * edge : 'enlarged width'] },
  );
}

/** Around a mean that keeps the output near the input's range, by a small linear congruential generator. */
function randomWeights(name: string, shape: number[], seed: number): InitializerToWrite {
  const fanIn = shape.slice(1).reduce((product, dim) => product * dim, 1);
  let state = seed;
  return encodeWeights(name, shape, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return (state / 2 ** 32 + 0.25) / fanIn;
  });
}
