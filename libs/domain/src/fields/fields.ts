import { applyDecorators } from '@nestjs/common';
import type { ApiPropertyOptions } from '@nestjs/swagger';
import { ApiProperty } from '@nestjs/swagger';
import { Transform, Type } from 'class-transformer';
import { ArrayMaxSize, ArrayMinSize, IsArray, ValidateIf, ValidateNested } from 'class-validator';
import type { AspectRatio } from '../common/aspect-ratio';
import { aspectRatios } from '../common/aspect-ratio';
import { limits } from '../common/limits';
import { Checked, forbiddenKeys, isCleanText, metadataProblem } from './text-rules';

/** What every field of a request body says of itself, once, for the check and for the OpenAPI document. */
export interface FieldOptions {
  description: string;
  example?: unknown;
  /** May be left out. */
  optional?: boolean;
  /** May be null, which means the same as leaving it out. */
  nullable?: boolean;
  /** What leaving it out means. */
  default?: unknown;
}

function field(options: FieldOptions, schema: ApiPropertyOptions, ...rules: PropertyDecorator[]): PropertyDecorator {
  const { optional, nullable, ...documented } = options;
  return applyDecorators(
    ApiProperty({
      ...schema,
      ...documented,
      required: !optional,
      ...(nullable && { nullable: true }),
    } as ApiPropertyOptions),
    ValidateIf((_, value) => !((optional && value === undefined) || (nullable && value === null))),
    ...rules,
  );
}

/** A string of `minLength` (1) to `maxLength` characters without NUL or lone surrogates. */
export function TextField(
  options: FieldOptions & { minLength?: number; maxLength: number; pattern?: RegExp; patternMessage?: string },
) {
  const { minLength = 1, maxLength, pattern, patternMessage, ...rest } = options;
  const documented = pattern?.source ?? (minLength > 0 ? String.raw`\S` : undefined);
  return field(
    rest,
    { type: String, minLength, maxLength, ...(documented && { pattern: documented }) },
    Checked('text', (value) => {
      if (typeof value !== 'string') return 'must be a string';
      const length = [...value].length;
      if (length < minLength || value.trim().length < Math.min(minLength, 1)) return 'must not be empty';
      if (length > maxLength) return `must be at most ${maxLength} characters, got ${length}`;
      if (!isCleanText(value)) return 'must not contain a NUL or a lone surrogate';
      if (pattern && !pattern.test(value)) return patternMessage ?? `must match ${pattern.source}`;
      return undefined;
    }),
  );
}

/** A finite number from `min` to `max`; whole when `integer`. */
export function NumberField(options: FieldOptions & { min: number; max: number; integer?: boolean }) {
  const { min, max, integer, ...rest } = options;
  return field(
    rest,
    { type: integer ? 'integer' : 'number', minimum: min, maximum: max },
    Checked('number', (value) => {
      if (typeof value !== 'number' || !Number.isFinite(value))
        return integer ? 'must be an integer' : 'must be a number';
      if (integer && !Number.isInteger(value)) return 'must be an integer';
      return value < min || value > max ? `must be from ${min} to ${max}, got ${value}` : undefined;
    }),
  );
}

/** True or false. */
export function BooleanField(options: FieldOptions) {
  return field(
    options,
    { type: Boolean },
    Checked('boolean', (value) => (typeof value === 'boolean' ? undefined : 'must be true or false')),
  );
}

/** One of some words. */
export function EnumField(options: FieldOptions & { values: readonly string[]; name: string }) {
  const { values, name, ...rest } = options;
  return field(
    rest,
    { enum: [...values], enumName: name },
    Checked('enum', (value) =>
      typeof value === 'string' && values.includes(value) ? undefined : `must be one of ${values.join(', ')}`,
    ),
  );
}

/** A shape of picture: one of the three words, or an array that holds one of them. The DTO has the word, or with `asSent` either form. */
export function AspectRatioField({ asSent = false, ...options }: FieldOptions & { asSent?: boolean }) {
  const word = { type: 'string', enum: [...aspectRatios] };
  return applyDecorators(
    ...(asSent ? [] : [Transform(({ value }: { value: unknown }) => onlyElement(value))]),
    field(
      options,
      { oneOf: [word, { type: 'array', items: word, minItems: 1, maxItems: 1 }] },
      Checked('aspectRatio', (value) =>
        aspectRatios.includes((asSent ? onlyElement(value) : value) as AspectRatio)
          ? undefined
          : `must be one of ${aspectRatios.join(', ')}, or an array holding one of them`,
      ),
    ),
  );
}

function onlyElement(value: unknown): unknown {
  return Array.isArray(value) && value.length === 1 ? (value as unknown[])[0] : value;
}

/** A JSON object of the caller's own. */
export function MetadataField(options: FieldOptions) {
  return applyDecorators(
    Transform(({ obj, key }: { obj: Record<string, unknown>; key: string }) => obj[key]),
    field(
      options,
      {
        type: 'object',
        additionalProperties: true,
        propertyNames: { not: { enum: forbiddenKeys } },
      } as ApiPropertyOptions,
      Checked('metadata', (value) =>
        metadataProblem(value, { bytes: limits.metadataBytes, depth: limits.metadataDepth }),
      ),
    ),
  );
}

/** An absolute http or https URL without credentials. */
export function UrlField(options: FieldOptions & { maxLength: number }) {
  const { maxLength, ...rest } = options;
  return field(
    rest,
    { type: String, format: 'uri', pattern: '^https?://', maxLength },
    Checked('url', (value) => urlProblem(value, maxLength)),
  );
}

/** An array of at most `max` such URLs. `documentedMin` is only written down: the service refuses fewer with a code of its own. */
export function UrlArrayField(options: FieldOptions & { documentedMin: number; max: number; maxLength: number }) {
  const { documentedMin, max, maxLength, ...rest } = options;
  return field(
    rest,
    {
      type: 'array',
      items: { type: 'string', format: 'uri', pattern: '^https?://', maxLength },
      minItems: documentedMin,
      maxItems: max,
    },
    Checked('urlArray', (value) => {
      if (!Array.isArray(value)) return 'must be an array of URLs';
      if (value.length > max) return `must have at most ${max} elements, got ${value.length}`;
      const problems = value.map((element) => urlProblem(element, maxLength));
      const first = problems.findIndex((problem) => problem !== undefined);
      return first < 0 ? undefined : `element ${first} ${problems[first]}`;
    }),
  );
}

/** What RFC 3986 lets a URI consist of; `URL` takes more and encodes it. */
const uriCharacters = /^(?:[\w\-.~:/?#[\]@!$&'()*+,;=]|%[\da-f]{2})+$/i;

function urlProblem(value: unknown, maxLength: number): string | undefined {
  if (typeof value !== 'string') return 'must be a string';
  if (value.length > maxLength) return `must be at most ${maxLength} characters, got ${value.length}`;
  if (!uriCharacters.test(value) || !URL.canParse(value)) return 'must be an absolute http or https URL';
  const url = new URL(value);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'must be an absolute http or https URL';
  return url.username || url.password ? 'must not contain a user name or password' : undefined;
}

/** An array of `min` to `max` objects, each checked as `element`. */
export function ArrayField(options: FieldOptions & { min: number; max: number; element: () => new () => object }) {
  const { min, max, element, ...rest } = options;
  return applyDecorators(
    Type(element),
    // An array is validated as its elements, so that one inside this one would pass.
    Transform(({ value }: { value: unknown }) =>
      Array.isArray(value) ? value.map((each: unknown) => (Array.isArray(each) ? null : each)) : value,
    ),
    field(
      rest,
      { type: () => element(), isArray: true, minItems: min, maxItems: max },
      IsArray({ message: 'must be an array' }),
      ArrayMinSize(min, { message: `must have at least ${min} element${min === 1 ? '' : 's'}` }),
      ArrayMaxSize(max, { message: `must have at most ${max} elements` }),
      ValidateNested({ each: true, message: 'must be an object' }),
    ),
  );
}
