import { SetMetadata } from '@nestjs/common';

const locationKey = 'location';

/** A record in an answer, as far as its place is concerned. */
type Located = Readonly<Record<string, unknown>>;

/** Says under which path the record of a POST can be read: its `Location` is that path and its id. */
export const LocatedAt = (path: string | ((record: Located) => string)) => SetMetadata(locationKey, path);

/** The path of the record in an answer; undefined for a route that has none, and for several records. */
export function locationOf(route: object, body: unknown): string | undefined {
  const path = Reflect.getMetadata(locationKey, route) as string | ((record: Located) => string) | undefined;
  if (path === undefined || typeof body !== 'object' || body === null || !('id' in body)) return undefined;
  const record = body as Located & { id: string };
  return `${typeof path === 'string' ? path : path(record)}/${record.id}`;
}
