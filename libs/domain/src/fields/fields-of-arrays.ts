import type { ApiPropertyOptions } from '@nestjs/swagger';
import type { FieldProblems } from '../errors/field-problems';
import { readObject } from './field-rule';
import { field, type FieldOptions, textProblem } from './fields';
import { shown, urlPattern, urlProblem } from './text-rules';

/**
 * An array of at most `max` URLs. `documentedMin` is only documented: for fewer, the service has an error code of its
 * own.
 */
export function UrlArrayField(options: FieldOptions & { documentedMin: number; max: number; maxLength: number }) {
  const { documentedMin, max, maxLength, ...rest } = options;
  const schema: ApiPropertyOptions = {
    type: 'array',
    items: { type: 'string', format: 'uri', pattern: urlPattern, maxLength },
    minItems: documentedMin,
    maxItems: max,
  };
  return field(rest, schema, { read: elementsOf('URLs', max, (element) => urlProblem(element, maxLength)) });
}

/** An array of at most `max` texts of 1 to `maxLength` characters. */
export function TextArrayField(options: FieldOptions & { max: number; maxLength: number }) {
  const { max, maxLength, ...rest } = options;
  const items = { type: 'string', minLength: 1, maxLength };
  const read = elementsOf('texts', max, (element) => textProblem(element, { maxLength }));
  return field(rest, { type: 'array', items, maxItems: max }, { read });
}

/** @param what the elements are, for messages */
const elementsOf =
  (what: string, max: number, problemOf: (element: unknown) => string | undefined) =>
  (value: unknown, pointer: string, problems: FieldProblems): unknown => {
    if (!Array.isArray(value)) problems.add(pointer, undefined, `must be an array of ${what}, got ${shown(value)}`);
    else if (value.length > max)
      problems.add(pointer, undefined, `must have at most ${max} elements, got ${value.length}`);
    else
      value.forEach((element, index) => {
        const problem = problemOf(element);
        if (problem !== undefined) problems.add(pointer, index, problem);
      });
    return value;
  };

/** An object, checked as `type`. */
export function ObjectField(options: FieldOptions & { type: () => new () => object }) {
  const { type, ...rest } = options;
  return field(
    rest,
    { type },
    {
      read: (value, pointer, problems) => readObject(type(), value, pointer, problems),
    },
  );
}

/** An array of `min` to `max` objects, each checked as `element`. */
export function ArrayField(options: FieldOptions & { min: number; max: number; element: () => new () => object }) {
  const { min, max, element, ...rest } = options;
  const schema: ApiPropertyOptions = { type: () => element(), isArray: true, minItems: min, maxItems: max };
  return field(rest, schema, {
    read: (value, pointer, problems) => readArray(element(), value, pointer, problems, { min, max }),
  });
}

/** Reads an array of `min` to `max` objects as DTOs; if it is too long, no element is read. */
export function readArray<T extends object>(
  element: new () => T,
  value: unknown,
  pointer: string,
  problems: FieldProblems,
  { min, max }: { min: number; max: number },
): (T | undefined)[] {
  if (!Array.isArray(value)) problems.add(pointer, undefined, 'must be an array of objects');
  else if (value.length < min || value.length > max)
    problems.add(pointer, undefined, `must have ${min} to ${max} elements, got ${value.length}`);
  else return value.map((each, index) => readObject(element, each, `${pointer}/${index}`, problems));
  return [];
}
