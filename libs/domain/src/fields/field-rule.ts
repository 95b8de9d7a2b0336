import { plainToInstance } from 'class-transformer';
import { ValidateBy, validateSync } from 'class-validator';
import type { FieldProblems } from '../errors/field-problems';

/** Says what is wrong with a value, if anything; without a subject, for the pointer is named before it. */
export type Check = (value: unknown) => string | undefined;

/**
 * How a field of a request body is read: either by the libraries, when `isSmall` has let its value pass, with `check`; or by `read`
 * alone, where a caller decides how large the value is.
 */
export type FieldRule = { optional: boolean; nullable: boolean } & (
  | { isSmall: (value: unknown) => boolean; check: Check }
  | {
      /** Looks at sizes before contents, and at no more of the value than its bounds allow. */
      read: (value: unknown, pointer: string, problems: FieldProblems) => unknown;
    }
);

type Dto = new () => object;

/** Rules of each DTO by the name of the field, under its prototype. */
const rulesOf = new WeakMap<object, Map<string, FieldRule>>();

/** Keeps the rule of a field with the class that declares it, and tells class-validator of its check. */
export function Field(rule: FieldRule): PropertyDecorator {
  return (prototype, name) => {
    const rules = rulesOf.get(prototype) ?? new Map<string, FieldRule>();
    rulesOf.set(prototype, rules.set(String(name), rule));
    if (!('check' in rule)) return;
    const { check } = rule;
    const validator = {
      validate: (value: unknown) => check(value) === undefined,
      defaultMessage: (args?: { value: unknown }) => check(args?.value) ?? '',
    };
    ValidateBy({ name: 'field', validator })(prototype, name);
  };
}

/**
 * An object of a body as its DTO, which has the fields that were sent and no others. Every key is looked at once, and only the value
 * of a known one any further, so that the time does not depend on what an unknown one holds. class-transformer and class-validator,
 * which take their time for every object and every key, see known fields alone, and of them only what is small.
 * @returns undefined for what is no object; where there are problems, what it returns is of no use.
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
  const rules = fieldsOf(dto);
  const sent = value as Record<string, unknown>;
  const small: Record<string, unknown> = {};
  const own: Record<string, unknown> = {};
  for (const [name, rule] of rules) {
    const field = Object.hasOwn(sent, name) ? sent[name] : undefined;
    if (field === undefined) {
      if (!rule.optional) problems.add(pointer, name, 'is required');
    } else if (field === null && rule.nullable) own[name] = null;
    else if ('read' in rule) own[name] = rule.read(field, `${pointer}/${name}`, problems);
    else if (field !== null && rule.isSmall(field)) small[name] = field;
    else problems.add(pointer, name, rule.check(field) ?? 'is not valid');
  }
  const instance = plainToInstance(dto, small);
  for (const { property, constraints = {} } of validateSync(instance, { skipMissingProperties: true }))
    problems.add(pointer, property, Object.values(constraints)[0] ?? 'is not valid');
  for (const name of Object.keys(sent)) if (!rules.has(name)) problems.add(pointer, name, 'is not a known field');
  return Object.assign(instance, own);
}

/** Fields of a DTO in the order in which they are declared. */
function fieldsOf(dto: Dto): ReadonlyMap<string, FieldRule> {
  const found = rulesOf.get(dto.prototype as object);
  if (found) return found;
  throw new Error(`${dto.name} has no fields.`);
}
