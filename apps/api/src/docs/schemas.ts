import type { OpenAPIObject } from '@nestjs/swagger';

export type Schemas = NonNullable<NonNullable<OpenAPIObject['components']>['schemas']>;

/** Our classes end with Dto, the schemas do not. */
export const withoutDto = (name: string): string => name.replace(/Dto$/, '');

/**
 * Gives the schemas of a document their names.
 * @throws Error if two get the same one
 */
export function named(document: OpenAPIObject): OpenAPIObject {
  const { schemas = {}, ...components } = document.components ?? {};
  for (const name of Object.keys(schemas))
    if (withoutDto(name) !== name && withoutDto(name) in schemas)
      throw new Error(`The schemas ${withoutDto(name)} and ${name} would have the same name.`);
  const renamed = Object.entries(schemas).map(([name, schema]) => [withoutDto(name), schema] as const);
  const json = JSON.stringify({ ...document, components: { ...components, schemas: Object.fromEntries(renamed) } });
  return JSON.parse(json.replace(/(#\/components\/schemas\/\w+)Dto"/g, '$1"')) as OpenAPIObject;
}

/** Forbids undocumented fields in requests and responses. */
export function closed(schemas: Schemas = {}): Schemas {
  const close = (schema: Schemas[string]) =>
    'properties' in schema && schema.additionalProperties === undefined
      ? { ...schema, additionalProperties: false }
      : schema;
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, close(schema)]));
}

/** In OpenAPI 3.1 a reference may have a description beside it; the builder still wraps both, as 3.0 needed it. */
export function unwrapped<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(unwrapped) as T;
  const entries = Object.entries(value).flatMap(([name, inner]): [string, unknown][] =>
    name === 'allOf' && Array.isArray(inner) && inner.length === 1
      ? Object.entries(unwrapped(inner[0] as object))
      : [[name, unwrapped(inner as unknown)]],
  );
  return Object.fromEntries(entries) as T;
}
