import { writeFileSync } from 'node:fs';
import { rotate, rotationOf } from '../../libs/diffusion/src/tensor/hadamard';
import { int8Metadata } from '../../libs/diffusion/src/weights/int8-form';
import { readValues } from '../../libs/diffusion/src/weights/named-tensor';
import { readSafetensors } from '../../libs/diffusion/src/weights/safetensors-file';
import { encodeSafetensors, type TensorToWrite } from './safetensors';

/**
 * Writes the weights of a file anew: those of some linear layers in int8, all else in float32.
 * @param changed values of weights that get others, which stay in float32
 */
export async function quantiseLayers(
  file: string,
  isQuantised: (layer: string) => boolean,
  changed: ReadonlyMap<string, Float32Array> = new Map(),
): Promise<void> {
  const tensors: Record<string, TensorToWrite> = {};
  const rotations = new Map<string, number>();
  for (const [name, tensor] of await readSafetensors(file)) {
    const values = changed.get(name) ?? (await readValues(tensor));
    const [out, width] = tensor.shape;
    const layer = name.replace(/\.weight$/, '');
    if (width === undefined || !isQuantised(layer) || changed.has(name)) {
      tensors[name] = { shape: [...tensor.shape], values };
      continue;
    }
    rotations.set(layer, rotationOf(width));
    rotate(values, rotationOf(width));
    const rows = Array.from({ length: out }, (_, row) => values.subarray(row * width, (row + 1) * width));
    const scales = rows.map((row) => Math.fround(Math.max(...row.map(Math.abs)) / 127));
    const numbers = values.map((value, i) => Math.round(value / scales[Math.floor(i / width)]));
    tensors[name] = { dtype: 'I8', shape: [out, width], values: numbers };
    tensors[`${name}_scale`] = { shape: [out, 1], values: scales };
  }
  writeFileSync(file, encodeSafetensors(tensors, int8Metadata(rotations)));
}
