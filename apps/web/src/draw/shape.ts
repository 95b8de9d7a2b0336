import { computed } from '@preact/signals';
import {
  mostAreas,
  type PictureSize,
  sizeOfPicture,
  sizeOfShape,
  type SizeRules,
} from '../../../../libs/diffusion/src/families/sizes';
import { edgeBounds, specified } from '../drawings/service-rules';
import { isWord } from '../drawings/shapes';
import { draft, drawnBy } from './draft';

/** What decides the sizes of the model that draws. */
export const sizeRules = computed<SizeRules>(() => {
  const { name = '', served } = drawnBy.value ?? {};
  const edge = served?.native_size ?? specified.edge;
  return {
    edge: specified.names.includes(name) ? specified.edge : edge,
    multiple: served?.size_multiple ?? 8,
    maxPixels: served?.max_pixels ?? mostAreas * edge ** 2,
  };
});

/** The nearest edge that the model draws. */
export function snapped(edge: number): number {
  const { multiple } = sizeRules.value;
  const { min, max } = edgeBounds;
  return Math.min(max, Math.max(min, Math.round(edge / multiple) * multiple));
}

/** What is drawn, in pixels. */
export const drawnSize = computed<PictureSize>(() => {
  const { aspect_ratio: shape, width, height } = draft.value;
  if (shape === null) return { width: width ?? sizeRules.value.edge, height: height ?? sizeRules.value.edge };
  if (isWord(shape)) return sizeOfPicture(sizeRules.value.edge, shape as 'square');
  const [w, h] = shape.split(':').map(Number);
  return sizeOfShape(sizeRules.value, { width: w, height: h });
});

/** Width of what is drawn divided by its height. */
export const shapeRatio = computed(() => drawnSize.value.width / drawnSize.value.height);
