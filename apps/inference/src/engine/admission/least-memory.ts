import type { DrawCommand } from '../calls/drawing-in-progress';
import type { CallBytes } from '../memory/arena';
import { bytesPerRow, decodeBytes, encodeBytes } from '../memory/picture-memory';
import type { LoadedModel } from '../models/loaded-model';
import type { DrawingModelSpec } from '../models/model-loading';

/** What the memory of a model's calls depends on. */
type CallNeeds = Parameters<typeof encodeBytes>[0] & Pick<DrawingModelSpec, 'rowsOfTexts'>;

export function needsOf({ pipeline }: LoadedModel): CallNeeds {
  return { ...pipeline.facts, rowsOfTexts: (texts) => pipeline.rowsOfTexts(texts) };
}

/** The least memory that a request is drawn with: all its texts at once, then one picture at a time, with guidance. */
export function leastMemoryOf(
  needs: CallNeeds,
  request: DrawCommand['request'],
): Required<Omit<CallBytes, 'upscaler'>> {
  return {
    textEncoder: encodeBytes(needs, needs.rowsOfTexts(request)),
    unet: 2 * bytesPerRow(needs, request),
    vaeDecoder: decodeBytes(needs, request),
  };
}
