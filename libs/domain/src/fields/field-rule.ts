import type { FieldProblems } from '../errors/field-problems';

/** How a field of a request body is read. */
export interface FieldRule {
  optional: boolean;
  nullable: boolean;
  /**
   * Checks what was sent and returns what the DTO has of it. It looks at sizes before contents, and at no more of the value than its
   * bounds allow: a caller decides how large the value is.
   */
  read(value: unknown, pointer: string, problems: FieldProblems): unknown;
}

type Dto = new () => object;

/** Rules of each DTO by the name of the field, under its prototype. */
const rulesOf = new WeakMap<object, Map<string, FieldRule>>();

/** Keeps the rule of a field with the class that declares it. */
export function Field(rule: FieldRule): PropertyDecorator {
  return (prototype, name) => {
    const rules = rulesOf.get(prototype) ?? new Map<string, FieldRule>();
    rulesOf.set(prototype, rules.set(String(name), rule));
  };
}

/**
 * An object of a body as its DTO, which has the fields that were sent and no others. Every key is looked at once, and only the value
 * of a known one any further, so that the time does not depend on what an unknown one holds.
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
  const instance = new dto();
  for (const [name, rule] of rules) {
    const field = Object.hasOwn(sent, name) ? sent[name] : undefined;
    if (field === undefined) {
      if (!rule.optional) problems.add(pointer, name, 'is required');
    } else
      (instance as Record<string, unknown>)[name] =
        field === null && rule.nullable ? null : rule.read(field, `${pointer}/${name}`, problems);
  }
  for (const name of Object.keys(sent)) if (!rules.has(name)) problems.add(pointer, name, 'is not a known field');
  return instance;
}

/** Fields of a DTO in the order in which they are declared. */
function fieldsOf(dto: Dto): ReadonlyMap<string, FieldRule> {
  const found = rulesOf.get(dto.prototype as object);
  if (found) return found;
  throw new Error(`${dto.name} has no fields.`);
}
