import { ValidateBy } from 'class-validator';

/** Keys that no metadata has: they mean something to JavaScript. */
export const forbiddenKeys: readonly string[] = ['__proto__', 'constructor', 'prototype'];

/** Whether a string can be stored and sent as UTF-8: no NUL and no half of a surrogate pair. */
export function isCleanText(value: string): boolean {
  return !value.includes('\0') && value.isWellFormed();
}

/** Why an object is refused as metadata; undefined when it is fine. */
export function metadataProblem(value: unknown, bounds: { bytes: number; depth: number }): string | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'must be a JSON object';
  const open: { node: object; depth: number }[] = [{ node: value, depth: 1 }];
  for (let next = open.pop(); next; next = open.pop()) {
    if (next.depth > bounds.depth) return `must have at most ${bounds.depth} levels`;
    for (const [key, child] of Object.entries(next.node) as [string, unknown][]) {
      if (forbiddenKeys.includes(key)) return `must not have a key named "${key}"`;
      if (!isCleanText(key)) return 'must not have a key with a NUL or a lone surrogate';
      if (typeof child === 'string' && !isCleanText(child)) return 'must not contain a NUL or a lone surrogate';
      if (typeof child === 'object' && child !== null) open.push({ node: child, depth: next.depth + 1 });
    }
  }
  if (Buffer.byteLength(JSON.stringify(value)) > bounds.bytes) return `must be at most ${bounds.bytes} bytes of JSON`;
  return undefined;
}

/** A decorator of class-validator from a function that says what is wrong, if anything. */
export function Checked(name: string, problem: (value: unknown) => string | undefined): PropertyDecorator {
  return ValidateBy({
    name,
    validator: {
      validate: (value) => problem(value) === undefined,
      defaultMessage: (args) => problem(args?.value) ?? '',
    },
  });
}
