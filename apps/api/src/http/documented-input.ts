import { FieldProblems, InvalidError } from '@app/domain';
import type { ArgumentMetadata, PipeTransform, Type } from '@nestjs/common';
import type { Request } from 'express';
import { pageOf } from './page';
import { QueryProblems } from './query-problems';

/** Where @nestjs/swagger keeps the parameters and the body that a route's decorators document. */
const parametersKey = 'swagger/apiParameters';
/** Where Nest keeps what the arguments of a controller's method are, by kind and position. */
const argumentsKey = '__routeArguments__';
/** What their keys there begin with if they are of the query. */
const queryKind = '4:';

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

/** A route of a controller. */
interface Route {
  controller: Type;
  handler: { name: string };
}

/**
 * Refuses a query with a parameter that the route does not document, or of which it does not take the value. Nest would
 * stop at the first, so what reads the query is called here too. A request line, and so the number of its parameters,
 * is bounded by Node.
 * @throws InvalidError naming every parameter that is wrong
 */
export function refuseBadQuery({ controller, handler }: Route, request: Request): void {
  const names = Object.keys(request.query);
  if (names.length === 0) return;
  const accepted = documented(handler).query;
  const unknown =
    accepted.size > 0
      ? `is not known here; ${[...accepted].join(', ')} can be sent`
      : 'is not known: this route takes none';
  const problems = new QueryProblems();
  for (const name of names) if (!accepted.has(name)) problems.add(name, unknown);
  if (accepted.has('limit')) problems.addThoseOf(() => pageOf(request));
  const read = (Reflect.getMetadata(argumentsKey, controller, handler.name) ?? {}) as Record<string, Argument>;
  for (const [key, { data, pipes }] of Object.entries(read))
    if (key.startsWith(queryKind))
      for (const pipe of pipes)
        problems.addThoseOf(() => pipe.transform(data === undefined ? request.query : request.query[data], ofQuery));
  problems.throwIfAny();
}

/** An argument that Nest takes from the query: one parameter, or all of them. */
interface Argument {
  data?: string;
  pipes: readonly PipeTransform[];
}

const ofQuery: ArgumentMetadata = { type: 'query' };

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
