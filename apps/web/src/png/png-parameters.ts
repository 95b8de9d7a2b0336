import type { Drawing } from '../drawings/drawing';
import { largestSeed, lengths } from '../drawings/service-rules';

type Fields =
  'prompt' | 'negative_prompt' | 'aspect_ratio' | 'seed' | 'cfg' | 'steps' | 'high_resolution' | 'width' | 'height';

/** The parameters that the service writes into a picture. */
export interface PictureParameters extends Pick<Drawing, Fields | 'prompt_weighting'> {
  model: string;
  scheduler: string;
  isOfFinetune: boolean;
}

const signature = [137, 80, 78, 71, 13, 10, 26, 10];
const keyword = 'parameters';
/** More than our text: two prompts of 32,000 characters, each at most six bytes as JSON, and a few short values. */
const longestText = 400_000;
/** The long edge of a high-resolution picture. */
const longestEdge = 4096;

/**
 * Reads the parameters that the service writes into a PNG's international text chunk (iTXt, PNG specification
 * 11.3.3.4), uncompressed.
 * @returns undefined for a file that has none, or is no PNG.
 */
export function readPngParameters(file: Uint8Array): PictureParameters | undefined {
  if (signature.some((byte, index) => file[index] !== byte)) return undefined;
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  // Each turn advances by at least the twelve bytes of a chunk's frame.
  for (let at = signature.length; at + 12 <= file.length;) {
    const length = view.getUint32(at);
    const type = String.fromCharCode(...file.subarray(at + 4, at + 8));
    if (type === 'iTXt') {
      const text = length > longestText ? undefined : textOf(file.subarray(at + 8, at + 8 + length));
      const found = text === undefined ? undefined : parametersOf(text);
      if (found) return found;
    }
    at += 12 + length;
  }
  return undefined;
}

/**
 * The text of the chunk with our keyword: keyword, 0, two bytes for compression, language, 0,
 * translated keyword, 0, text.
 */
function textOf(data: Uint8Array): string | undefined {
  const keywordEnd = keyword.length;
  const start = String.fromCharCode(...data.subarray(0, keywordEnd));
  if (start !== keyword || data[keywordEnd] !== 0 || data[keywordEnd + 1] !== 0) return undefined;
  const languageEnd = data.indexOf(0, keywordEnd + 3);
  const translationEnd = data.indexOf(0, languageEnd + 1);
  return languageEnd < 0 || translationEnd < 0
    ? undefined
    : new TextDecoder().decode(data.subarray(translationEnd + 1));
}

function parametersOf(text: string): PictureParameters | undefined {
  const found = parsed(text);
  const { prompt, negative_prompt, seed, cfg, steps, model, width, height } = found;
  const isKnown =
    isText(prompt) &&
    (negative_prompt === null || negative_prompt === undefined || isText(negative_prompt)) &&
    isWithin(seed, [0, largestSeed], Number.isInteger) &&
    isWithin(cfg, [0, 100]) &&
    isWithin(steps, [1, 1_000], Number.isInteger) &&
    isWithin(width, [1, longestEdge]) &&
    isWithin(height, [1, longestEdge]);
  if (!isKnown) return undefined;
  return {
    prompt,
    negative_prompt: typeof negative_prompt === 'string' ? negative_prompt : null,
    prompt_weighting: found.prompt_weighting === true,
    seed: Number(seed),
    cfg: Number(cfg),
    steps: Number(steps),
    model: typeof model === 'string' ? model : '',
    scheduler: typeof found.scheduler === 'string' ? found.scheduler : '',
    isOfFinetune: found.weights_hash !== undefined,
    ...{ aspect_ratio: null, width: Number(width), height: Number(height) },
    // Older files have only the upscaler.
    high_resolution: found.high_resolution === true || found.upscaler !== undefined,
  };
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.length <= lengths.prompt;
}

function isWithin(value: unknown, [min, max]: [number, number], isKind: (value: number) => boolean = Number.isFinite) {
  return typeof value === 'number' && isKind(value) && value >= min && value <= max;
}

function parsed(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
