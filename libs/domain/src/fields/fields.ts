import { applyDecorators } from '@nestjs/common';
import { ApiProperty, type ApiPropertyOptions } from '@nestjs/swagger';
import { Transform } from 'class-transformer';
import { isAspectRatio, ratioPattern, shapeWords } from '../common/sizes';
import { limits } from '../common/limits';
import { anyValue } from './fields-of-answers';
import type { ErrorCode } from '../errors/error-table';
import { type Check, emptyMessage, Field, type FieldRule } from './field-rule';
import {
  characterCount,
  forbiddenKeys,
  hasLongMarks,
  hasWord,
  isCleanText,
  isPrintable,
  metadataProblem,
  shown,
  urlPattern,
  urlProblem,
} from './text-rules';

/** Declarations of every field, both for its check and for the OpenAPI document. */
export interface FieldOptions {
  description: string;
  example?: unknown;
  /** Whether it may be left out or be null, which means the same. */
  optional?: boolean;
  /** The error code when it is missing, null or empty, if it has one of its own. */
  missingCode?: ErrorCode<'invalid'>;
  default?: string | number | boolean;
}

/**
 * The document says a default in words: generators would send a `default` as a value, which overrules a model's own
 * default, or take its field for one that must be there.
 */
const withDefault = ({ description, default: value, ...rest }: FieldOptions) => ({
  description: value === undefined ? description : `${description} Default: ${value}.`,
  ...rest,
});

/** A scalar; `maxLength` of a string is in UTF-16 units. */
const isScalar = (value: unknown, maxLength = 100): boolean =>
  typeof value === 'string' ? value.length <= maxLength : typeof value !== 'object';

/** A field with one small value, checked without conversion. */
export function smallField(
  options: FieldOptions,
  schema: ApiPropertyOptions,
  check: Check,
  isSmall: (value: unknown) => boolean = isScalar,
): PropertyDecorator {
  return field(options, schema, { check, isSmall });
}

/** A field whose whole value is the caller's: it is checked and stored as it is. */
export function ownField(options: FieldOptions, schema: ApiPropertyOptions, check: Check): PropertyDecorator {
  return field(options, schema, {
    read: (value, pointer, problems) => {
      const problem = check(value);
      if (problem !== undefined) problems.add(pointer, undefined, problem);
      return value;
    },
  });
}

type Reading =
  | Pick<Extract<FieldRule, { read: unknown }>, 'read'>
  | Pick<Extract<FieldRule, { check: unknown }>, 'check' | 'isSmall'>;

export function field(options: FieldOptions, schema: ApiPropertyOptions, reading: Reading): PropertyDecorator {
  const { optional = false, missingCode, ...documented } = withDefault(options);
  return applyDecorators(
    ApiProperty({
      ...schema,
      ...documented,
      required: !optional,
      ...(optional && { nullable: true }),
    } as ApiPropertyOptions),
    Field({ optional, ...(missingCode && { missingCode }), ...reading }),
  );
}

/**
 * Letters and digits of the most common scripts, for the document only: not every JSON Schema tool knows Unicode
 * classes. Every letter and digit is accepted.
 */
const commonLetters = String.raw`[0-9A-Za-z\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u02AF\u0391-\u03A1\u03A3-\u03CE\u0400-\u0481\u048A-\u052F\u05D0-\u05EA\u0620-\u064A\u0904-\u0939\u0E01-\u0E30\u3041-\u3096\u30A1-\u30FA\u4E00-\u9FA5\uAC00-\uD7A3]`;

const printable = String.raw`[^\u0000-\u001F\u007F-\u009F]*`;

/**
 * A string of `minLength` (1) to `maxLength` characters without NUL or lone surrogates; with `word` it must contain a
 * letter or a digit, and with `printable` no control character either.
 */
export function TextField(
  options: FieldOptions & {
    minLength?: number;
    maxLength: number;
    pattern?: RegExp;
    patternMessage?: string;
    word?: boolean;
    printable?: boolean;
  },
) {
  const {
    minLength = 1,
    maxLength,
    pattern,
    patternMessage,
    word = false,
    printable: isLine = false,
    ...rest
  } = options;
  // Apart from `word`, the only pattern is one word without spaces.
  const wordPattern = pattern ? String.raw`^\S*${commonLetters}\S*$` : commonLetters;
  const linePattern = `^${printable}${commonLetters}${printable}$`;
  const documented = isLine
    ? linePattern
    : word
      ? wordPattern
      : (pattern?.source ?? (minLength > 0 ? String.raw`\S` : undefined));
  const schema = { type: String, minLength, maxLength, ...(documented && { pattern: documented }) };
  const check: Check = (value) => {
    const problem = textProblem(value, { minLength, maxLength });
    if (problem !== undefined || typeof value !== 'string') return problem;
    if (pattern && !pattern.test(value)) return patternMessage ?? `must match ${pattern.source}`;
    if (isLine && !isPrintable(value)) return unprintableMessage;
    return word && !hasWord(value) ? 'must have a letter or a digit' : undefined;
  };
  // A character is one or two units.
  return smallField(rest, schema, check, (value) => isScalar(value, 2 * maxLength));
}

const unprintableMessage = 'must have no control character';

/** What is wrong with a text of `minLength` (1) to `maxLength` characters. */
export function textProblem(value: unknown, { minLength = 1, maxLength }: { minLength?: number; maxLength: number }) {
  if (typeof value !== 'string') return `must be a string, got ${shown(value)}`;
  // A character is one or two units: no more of a text is counted than can be right.
  const length = value.length > 2 * maxLength ? value.length : characterCount(value);
  if (length > maxLength) return `must be at most ${maxLength} characters, got ${length}`;
  if (length < minLength || value.trim().length < Math.min(minLength, 1)) return emptyMessage;
  if (!isCleanText(value)) return 'must not contain a NUL or a lone surrogate';
  return hasLongMarks(value) ? `must not have more than ${limits.marksInARow} combining marks in a row` : undefined;
}

/** A finite number from `min` to `max`; an integer with `integer`. @param options `note`: said where one is outside */
export function NumberField(options: FieldOptions & { min: number; max: number; integer?: boolean; note?: string }) {
  const { min, max, integer, note = '', ...rest } = options;
  return smallField(rest, { type: integer ? 'integer' : 'number', minimum: min, maximum: max }, (value) => {
    const isOfKind = typeof value === 'number' && (integer ? Number.isInteger(value) : Number.isFinite(value));
    if (!isOfKind) return `must be ${integer ? 'an integer' : 'a number'}, got ${shown(value)}`;
    return value < min || value > max ? `must be from ${min} to ${max}, got ${value}${note}` : undefined;
  });
}

/** True or false. */
export function BooleanField(options: FieldOptions) {
  return smallField(options, { type: Boolean }, (value) =>
    typeof value === 'boolean' ? undefined : `must be true or false, got ${shown(value)}`,
  );
}

/**
 * One of some words.
 * @param options `elsewhere`: what others call a word; `refused`: why there is no such word here, as the end of a
 * sentence
 */
export function EnumField(
  options: FieldOptions & {
    values: readonly string[];
    name: string;
    elsewhere?: (name: string) => string | undefined;
    refused?: Readonly<Record<string, string>>;
  },
) {
  const { values, name, elsewhere, refused = {}, ...rest } = options;
  return smallField(rest, { enum: [...values], enumName: name }, (value) => {
    if (typeof value === 'string' && values.includes(value)) return undefined;
    if (typeof value === 'string' && Object.hasOwn(refused, value)) return refused[value];
    const ours = typeof value === 'string' ? elsewhere?.(value) : undefined;
    if (ours !== undefined) return `is called "${ours}" here, got ${shown(value)}`;
    return `must be one of ${values.join(', ')}, got ${shown(value)}`;
  });
}

/**
 * A picture shape: one of the three words, a ratio, or an array with one of them. The DTO gets the word or ratio; with
 * `asSent`, either form.
 */
export function AspectRatioField({ asSent = false, ...options }: FieldOptions & { asSent?: boolean }) {
  const check: Check = (value) =>
    isAspectRatio(onlyElement(value))
      ? undefined
      : `must be ${shapeWords.join(', ')}, or a ratio from 1:4 to 4:1 of whole numbers to 64 such as 16:9, or an array holding one of these, got ${shown(value)}`;
  return applyDecorators(
    ...(asSent ? [] : [Transform(({ value }: { value: unknown }) => onlyElement(value))]),
    smallField(options, shapeSchema, check, (value) => isScalar(onlyElement(value))),
  );
}

const oneShape = {
  type: 'string',
  anyOf: [{ enum: [...shapeWords] }, { pattern: ratioPattern.source }],
} satisfies ApiPropertyOptions;

/** A shape as a request names it. */
export const shapeSchema = {
  oneOf: [oneShape, { type: 'array', items: oneShape, minItems: 1, maxItems: 1 }],
} satisfies ApiPropertyOptions;

function onlyElement(value: unknown): unknown {
  return Array.isArray(value) && value.length === 1 ? (value as unknown[])[0] : value;
}

/** A JSON value of the caller's own. */
export function MetadataField(options: FieldOptions) {
  const schema = anyValue({ propertyNames: { not: { enum: forbiddenKeys } } }) as ApiPropertyOptions;
  return ownField(options, schema, (value) =>
    metadataProblem(value, { bytes: limits.metadataBytes, depth: limits.metadataDepth }),
  );
}

/** An absolute http or https URL without credentials. */
export function UrlField(options: FieldOptions & { maxLength: number }) {
  const { maxLength, ...rest } = options;
  const schema = { type: String, format: 'uri', pattern: urlPattern, maxLength };
  const check: Check = (value) => urlProblem(value, maxLength);
  return smallField(rest, schema, check, (value) => isScalar(value, maxLength));
}
