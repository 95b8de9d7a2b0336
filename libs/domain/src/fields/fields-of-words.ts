import type { FieldOptions } from './fields';
import { ownField, smallField } from './fields';
import { shown } from './shown';

/** An array of one or more of some words, each once. */
export function ArrayOfWordsField(options: FieldOptions & { values: readonly string[]; name: string }) {
  const { values, name, ...rest } = options;
  const schema = {
    enum: [...values],
    enumName: name,
    isArray: true,
    minItems: 1,
    maxItems: values.length,
    uniqueItems: true,
  } as Parameters<typeof ownField>[1];
  const words = values.join(', ');
  return ownField(rest, schema, (value) => {
    if (!Array.isArray(value)) return `must be an array of ${words}, got ${shown(value)}`;
    if (value.length < 1 || value.length > values.length) return `must have 1 to ${values.length} elements`;
    const sent = value as unknown[];
    const wrong = sent.findIndex((word) => !values.includes(word as string));
    if (wrong >= 0) return `must have only ${words}; element ${wrong} is ${shown(sent[wrong])}`;
    return new Set(sent).size < sent.length ? 'must have each word once' : undefined;
  });
}

/** An integer from `min` to `max`, or the one word that means something else. It may be left out. */
export function CountOrWordField({
  min,
  max,
  word,
  ...options
}: FieldOptions & { min: number; max: number; word: string }) {
  const schema = {
    oneOf: [
      { type: 'integer', minimum: min, maximum: max },
      { type: 'string', enum: [word] },
    ],
  } as Parameters<typeof smallField>[1];
  return smallField({ ...options, optional: true }, schema, (value) => {
    const isCount = typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max;
    return isCount || value === word
      ? undefined
      : `must be an integer from ${min} to ${max}, or "${word}", got ${shown(value)}`;
  });
}
