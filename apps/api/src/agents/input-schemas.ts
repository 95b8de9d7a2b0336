import { projectFile } from '@app/process';

type Json = string | number | boolean | null | Json[] | { [key: string]: Json };
type Schema = Record<string, Json>;

/** A tool's input: a schema of an object. */
export interface InputSchema extends Record<string, unknown> {
  type: 'object';
  properties?: Schema;
  required?: string[];
}

let components: Record<string, Schema> | undefined;

/**
 * A body of the document as a tool's input, without these fields and with all that it refers to written out. What a
 * call sends is checked by the route alone, whose sentences are better than those of a schema.
 */
export function inputOf(name: string, { without = [] }: { without?: readonly string[] } = {}): InputSchema {
  components ??= (JSON.parse(projectFile('openapi.json')) as { components: { schemas: Record<string, Schema> } })
    .components.schemas;
  const { properties = {}, ...schema } = writtenOut(components[name]) as unknown as InputSchema;
  const kept = Object.entries(properties).filter(([field]) => !without.includes(field));
  return { ...schema, properties: Object.fromEntries(kept) };
}

function writtenOut(value: Json): Json {
  if (Array.isArray(value)) return value.map(writtenOut);
  if (value === null || typeof value !== 'object') return value;
  const { $ref, ...own } = value;
  const referred = typeof $ref === 'string' ? (writtenOut(components![$ref.split('/').at(-1)!]) as Schema) : {};
  const others = Object.entries(own).map(([key, each]) => [key, writtenOut(each)]);
  return { ...referred, ...(Object.fromEntries(others) as Schema) };
}
