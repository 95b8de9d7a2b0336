import type { PartName } from '../weights/original-names';
import { quote } from '../safetensors/quote';
import { malformed, unsupported } from './weights-error';

/** A layer's strength in metadata: its `alpha`, the `rank` to divide this by, or by the square root of. */
export interface Scaling {
  alpha: number;
  /** Of the configuration, for layers whose factors have none. */
  rank?: number;
  isRankStabilised: boolean;
}

/** @param paths of a layer, in the model and in the file */
export type ScalingOf = (part: PartName, paths: readonly string[]) => Scaling | undefined;

/** peft lists every layer that it changes, which takes about ten kB. */
const MAX_CONFIG_LENGTH = 256 * 1024;
/** One for each layer of the largest models would be some more than a thousand; each is compared with each layer. */
const MAX_PATTERNS = 2000;

type Fields = Readonly<Record<string, unknown>>;

/**
 * Reads peft's configuration from a file's metadata, where it is the JSON of one part (`lora_alpha`) or of all
 * (`text_encoder.lora_alpha`, in diffusers' `lora_adapter_metadata`), or the metadata's own keys.
 * @throws WeightsError if it is malformed; so does what is returned
 */
export function readScaling(metadata: ReadonlyMap<string, string>): ScalingOf {
  const texts = [...metadata].filter(
    ([key, text]) => /adapter_(?:metadata|config)|peft/.test(key) && /^\s*\{/.test(text),
  );
  const configs = [...texts.map(([key, text]) => parse(key, text)), Object.fromEntries(metadata)];
  const field = (part: PartName, key: string): unknown =>
    configs
      .map((config) => config[`${part}.${key}`] ?? fieldsOf(config[part])[key] ?? config[key])
      .find((one) => one != null);
  const patterns = new Map<PartName, [string, unknown][]>();
  const patternsOf = (part: PartName): [string, unknown][] => {
    const known = patterns.get(part) ?? Object.entries(fieldsOf(field(part, 'alpha_pattern')));
    if (known.length > MAX_PATTERNS)
      throw unsupported(`The metadata has ${known.length} patterns of alphas; at most ${MAX_PATTERNS} are accepted.`);
    patterns.set(part, known);
    return known;
  };
  return (part, paths) => {
    const [, own] = patternsOf(part).find(([pattern]) => isOneOf(paths, pattern)) ?? [];
    const alpha = numberOf(own ?? field(part, 'lora_alpha') ?? field(part, 'alpha'));
    if (alpha === undefined) return undefined;
    const isRankStabilised = String(field(part, 'use_rslora')).toLowerCase() === 'true';
    return { alpha, rank: numberOf(field(part, 'r')), isRankStabilised };
  };
}

const fieldsOf = (value: unknown): Fields => (typeof value === 'object' && value !== null ? (value as Fields) : {});

function parse(key: string, text: string): Fields {
  if (text.length > MAX_CONFIG_LENGTH)
    throw malformed(`The metadata ${quote(key)} is longer than ${MAX_CONFIG_LENGTH} characters.`);
  try {
    return fieldsOf(JSON.parse(text));
  } catch {
    throw malformed(`The metadata ${quote(key)} is not JSON.`);
  }
}

/** JSON can contain a number that is too large for any type; metadata's own values are texts. */
function numberOf(value: unknown): number | undefined {
  if (value === undefined) return undefined;
  if (!['number', 'string'].includes(typeof value) || value === '' || !Number.isFinite(Number(value)))
    throw malformed('The metadata has an alpha or a rank that is not a number.');
  return Number(value);
}

/** Whether a pattern names a layer. peft's are regular expressions of a path's end; only plain paths are known here. */
function isOneOf(paths: readonly string[], pattern: string): boolean {
  const plain = pattern.replace(/^\^|\$$|\\(?=\.)/g, '');
  if (!/^[\w.-]*$/.test(plain)) throw unsupported(`The metadata's pattern ${quote(pattern)} is not a layer's path.`);
  return paths.some((path) => path === plain || (!pattern.startsWith('^') && path.endsWith(`.${plain}`)));
}
