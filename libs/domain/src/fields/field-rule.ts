import { plainToInstance } from 'class-transformer';
import { ValidateBy, validateSync } from 'class-validator';
import type { ErrorCode } from '../errors/error-table';
import type { FieldProblems } from '../errors/field-problems';
import { Declarations } from './declarations';
import type { Advice } from './foreign-names';
import { unknownField } from './foreign-names';

/** Says what is wrong with a value, if anything. The text has no subject, because the pointer precedes it. */
export type Check = (value: unknown) => string | undefined;

/**
 * How a field of a request body is read: small values (`isSmall`) are checked by class-validator with `check`; a value
 * whose size the caller decides is read by `read` alone.
 */
export type FieldRule = {
  /** It may be left out, or be null, which means the same. */
  optional: boolean;
  /** The error code when it is missing, null or empty, if it has one of its own. */
  missingCode?: ErrorCode<'invalid'>;
} & (
  | { isSmall: (value: unknown) => boolean; check: Check }
  | {
      /** Checks sizes before contents, and reads no more of the value than its limits allow. */
      read: (value: unknown, pointer: string, problems: FieldProblems) => unknown;
    }
);

/** Said of a text without any character that can be seen. */
export const emptyMessage = 'must not be empty';

const rulesOfDtos = new Declarations<FieldRule>();

/** Stores the rule of a field with the class that declares it, and registers its check with class-validator. */
export function Field(rule: FieldRule): PropertyDecorator {
  return (prototype, name) => {
    rulesOfDtos.add(prototype, name, rule);
    if (!('check' in rule)) return;
    const { check } = rule;
    const validator = {
      validate: (value: unknown) => check(value) === undefined,
      defaultMessage: (args?: { value: unknown }) => check(args?.value) ?? '',
    };
    ValidateBy({ name: 'field', validator })(prototype, name);
  };
}

const adviceOf = new WeakMap<object, Advice>();

/** What a body of the class is told instead of some fields that it does not have, by our names of them. */
export function Without(advice: Readonly<Record<string, string>>): ClassDecorator {
  return ({ prototype }) => void adviceOf.set(prototype as object, new Map(Object.entries(advice)));
}

/**
 * Reads an object of a body as its DTO, which gets only the known fields that were sent. Each key is looked up once and
 * the values of unknown keys are ignored, so that the time does not depend on them. class-transformer and
 * class-validator, which are slow for every object and key, see only known, small fields.
 * A field that is null counts as left out.
 * @returns undefined for a value that is no object; if there are problems, the result is meaningless.
 */
export function readObject<T extends object>(
  dto: new () => T,
  value: unknown,
  pointer: string,
  problems: FieldProblems,
): T | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    problems.add(pointer, undefined, 'must be a JSON object');
    return undefined;
  }
  const rules = rulesOfDtos.of(dto);
  const sent = value as Record<string, unknown>;
  const small: Record<string, unknown> = {};
  const own: Record<string, unknown> = {};
  for (const [name, rule] of rules) {
    const field = Object.hasOwn(sent, name) ? sent[name] : undefined;
    if (field === undefined || field === null) {
      if (!rule.optional) problems.add(pointer, name, 'is required', rule.missingCode);
    } else if ('read' in rule) own[name] = rule.read(field, `${pointer}/${name}`, problems);
    else if (rule.isSmall(field)) small[name] = field;
    else problems.add(pointer, name, rule.check(field) ?? 'is not valid');
  }
  const instance = plainToInstance(dto, small);
  for (const { property, constraints = {} } of validateSync(instance, { skipMissingProperties: true })) {
    const message = Object.values(constraints)[0] ?? 'is not valid';
    problems.add(pointer, property, message, message === emptyMessage ? rules.get(property)?.missingCode : undefined);
  }
  const advice = adviceOf.get(dto.prototype as object);
  for (const name of Object.keys(sent))
    if (!rules.has(name)) problems.add(pointer, name, unknownField(name, rules, advice));
  return Object.assign(instance, own);
}
