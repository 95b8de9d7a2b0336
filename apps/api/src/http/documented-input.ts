import { FieldProblems, InvalidError } from '@app/domain';
import type { Request } from 'express';
import { badParameter } from './bad-parameter';

/** Where @nestjs/swagger keeps the parameters and the body that a route's decorators document. */
const parametersKey = 'swagger/apiParameters';

interface Documented {
  query: ReadonlySet<string>;
  hasBody: boolean;
}

/** What each route documents; bounded by the number of routes. */
const known = new WeakMap<object, Documented>();

function documented(route: object): Documented {
  const found = known.get(route);
  if (found) return found;
  const parameters = (Reflect.getMetadata(parametersKey, route) ?? []) as { in: string; name?: string }[];
  const query = parameters.flatMap(({ in: place, name }) => (place === 'query' && name ? name : []));
  const made = { query: new Set(query), hasBody: parameters.some(({ in: place }) => place === 'body') };
  known.set(route, made);
  return made;
}

/**
 * Refuses a query parameter that the route does not document. A request line, and so the number of its
 * parameters, is bounded by Node.
 * @throws InvalidError naming the first.
 */
export function refuseUnknownParameters(route: object, { query }: Request): void {
  const accepted = documented(route).query;
  for (const name of Object.keys(query))
    if (!accepted.has(name))
      throw badParameter(
        name.slice(0, 100),
        accepted.size > 0
          ? `is not known here; ${[...accepted].join(', ')} can be sent`
          : 'is not known: this route takes none',
      );
}

/**
 * Refuses a body with anything in it, of a route that documents none.
 * @throws InvalidError
 */
export function refuseBody(route: object, request: Request): void {
  const { method } = request;
  const body = request.body as unknown;
  if (method !== 'POST' || body === undefined || documented(route).hasBody) return;
  const problems = new FieldProblems();
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    problems.add('', undefined, 'must be an empty object, or be left out');
  else for (const name of Object.keys(body)) problems.add('', name, 'is not a known field: this route takes none');
  if (problems.count > 0) throw new InvalidError('ValidationFailed', problems.sentence(), problems.list());
}
