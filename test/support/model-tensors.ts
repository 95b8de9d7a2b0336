import type { NamedTensor } from '../../libs/diffusion/src/weights/named-tensor';
import type { PartTensors } from '../../libs/diffusion/src/families/family';
import type { PartName } from '../../libs/diffusion/src/weights/original-names';

/** A model of which only names and shapes are known. */
export function modelTensors(parts: Partial<Record<PartName, Record<string, number[]>>>): PartTensors {
  const named = ([name, shape]: [string, number[]]): [string, NamedTensor] => [
    name,
    { name, type: 'F32', shape, file: 'none', offset: 0 },
  ];
  return new Map(
    Object.entries(parts).map(([part, shapes]) => [part as PartName, new Map(Object.entries(shapes).map(named))]),
  );
}
