import { families } from '.';
import type { PartTensors } from '../weights/original-names';
import type { DescribedFiles, Family } from './family';

/** The family of a model of which there are weights alone, at least its transformer. */
export function describedFamilyOf(tensors: PartTensors): (Family & { described: DescribedFiles }) | undefined {
  const found = families.find((family) => family.recognises({ tensors, marks: new Set(), configs: new Map() }));
  return found?.described && { ...found, described: found.described };
}
