/** A `config.json` says something that the graphs here do not know; the message is one plain sentence. */
export class UnsupportedConfigError extends Error {
  override name = 'UnsupportedConfigError';
}

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
        throw new UnsupportedConfigError(`"${key}" is ${JSON.stringify(value)}; accepted is ${accepted}.`);
      }
}

/** A positive number of a configuration, or the usual one. @throws UnsupportedConfigError */
export function numberOf<T>(json: ConfigJson, key: string, usual: T): number | T {
  const value = json[key] ?? usual;
  if (value !== usual && !(typeof value === 'number' && Number.isFinite(value) && value > 0))
    throw new UnsupportedConfigError(`"${key}" is ${JSON.stringify(value)}; accepted is a positive number.`);
  return value as number | T;
}

/** Positive numbers of a configuration, or the usual ones. @throws UnsupportedConfigError */
export function numbersOf(json: ConfigJson, key: string, usual: readonly number[]): readonly number[] {
  const values = json[key] ?? usual;
  if (!Array.isArray(values) || !values.every((value) => Number.isFinite(value) && value > 0))
    throw new UnsupportedConfigError(`"${key}" is ${JSON.stringify(values)}; accepted is a list of positive numbers.`);
  return values as number[];
}
