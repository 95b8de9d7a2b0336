import type { NamedTensor } from '../../libs/diffusion/src/weights/named-tensor';
import type { PartName, PartTensors } from '../../libs/diffusion/src/weights/original-names';

/** A model without values: only names and shapes. */
export function modelTensors(parts: Record<PartName, Record<string, number[]>>): PartTensors {
  const named = ([name, shape]: [string, number[]]): [string, NamedTensor] => [
    name,
    { name, type: 'F32', shape, file: 'none', offset: 0 },
  ];
  return new Map(Object.entries(parts).map(([part, shapes]) => [part, new Map(Object.entries(shapes).map(named))]));
}
