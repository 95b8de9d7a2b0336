import { FieldProblems } from '@app/domain';
import type { Request } from 'express';
import { takesBody } from '../docs/takes';

/**
 * Refuses a body with anything in it, of a POST that documents none.
 * @throws InvalidError
 */
export function refuseBody(route: object, request: Request): void {
  const body = request.body as unknown;
  if (request.method !== 'POST' || body === undefined || takesBody(route)) return;
  const problems = new FieldProblems();
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    problems.add('', undefined, 'must be an empty object, or be left out');
  else for (const name of Object.keys(body)) problems.add('', name, 'is not a known field: this route takes none');
  problems.throwIfAny();
}
