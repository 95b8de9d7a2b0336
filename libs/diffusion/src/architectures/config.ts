import { UnsupportedConfigError } from '../errors';

export type ConfigJson = Readonly<Record<string, unknown>>;

/**
 * Checks values of which only some are known; one that is missing or null is the usual one. A list is checked item by
 * item.
 * @throws UnsupportedConfigError
 */
export function assertKnown(json: ConfigJson, known: Readonly<Record<string, readonly unknown[]>>): void {
  for (const [key, values] of Object.entries(known))
    for (const value of [json[key]].flat())
      if (value !== undefined && value !== null && !values.includes(value)) {
        const accepted = values.map((one) => JSON.stringify(one)).join(', ') || 'none';
        throw new UnsupportedConfigError(`"${key}" is ${shown(value)}; accepted is ${accepted}.`);
      }
}

/** The bounds of a number: those that no trained model comes near. */
interface Bounds {
  least: number;
  most: number;
  isWhole?: boolean;
}

/** Of what is added to a variance. */
export const epsilons: Bounds = { least: 1e-15, most: 0.1 };
/** Of the base of rotary frequencies. */
export const thetas: Bounds = { least: 1, most: 1e9 };
/** Of what divides channels or tokens, which the graph then compares with their number. */
export const counts: Bounds = { least: 1, most: 1e6, isWhole: true };

/** A number of a configuration, or the usual one. @throws UnsupportedConfigError */
export function numberOf<T>(json: ConfigJson, key: string, usual: T, { least, most, isWhole }: Bounds): number | T {
  const value = json[key] ?? usual;
  if (value === usual) return usual;
  if (typeof value === 'number' && value >= least && value <= most && (!isWhole || Number.isInteger(value)))
    return value;
  const kind = isWhole ? 'whole number' : 'number';
  throw new UnsupportedConfigError(`"${key}" is ${shown(value)}; accepted is a ${kind} from ${least} to ${most}.`);
}

/** As many even numbers as the usual ones, or these. @throws UnsupportedConfigError */
export function evenNumbersOf(json: ConfigJson, key: string, usual: readonly number[]): readonly number[] {
  const values = json[key] ?? usual;
  const isEven = (value: unknown): boolean => Number.isInteger(value) && Number(value) > 0 && Number(value) % 2 === 0;
  if (Array.isArray(values) && values.length === usual.length && values.every(isEven)) return values as number[];
  throw new UnsupportedConfigError(`"${key}" is ${shown(values)}; accepted are ${usual.length} even whole numbers.`);
}

/** Refuses a configuration of other sizes than its weights have. @throws UnsupportedConfigError */
export function assertStated(json: ConfigJson, sizes: Readonly<Record<string, number>>): void {
  for (const [key, size] of Object.entries(sizes)) {
    const value = json[key] ?? size;
    if (value !== size)
      throw new UnsupportedConfigError(`"${key}" is ${shown(value)}, and by the weights it is ${size}.`);
  }
}

/** A value in a sentence. */
const shown = (value: unknown): string => JSON.stringify(value).slice(0, 60);
