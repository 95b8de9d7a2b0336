import { FieldProblems } from '@app/domain';
import { parametersOf, type Query, readParameters } from '@app/domain/http';
import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';
import { queriesOf, TakesQuery } from '../docs/takes';

type Dto<T extends object = object> = new () => T;

declare module 'express-serve-static-core' {
  interface Request {
    /** By the DTOs that the route takes. */
    queries?: ReadonlyMap<Dto, object>;
  }
}

/** The checked query, as the DTO that is the type of the parameter; it is documented too. */
export const ValidQuery = (): ParameterDecorator => (prototype, name, index) => {
  const dto = (Reflect.getMetadata('design:paramtypes', prototype, name!) as Dto[])[index];
  TakesQuery(dto)(prototype, name!, Object.getOwnPropertyDescriptor(prototype, name!)!);
  CheckedQuery(dto)(prototype, name, index);
};

const CheckedQuery = createParamDecorator((dto: Dto, context: ExecutionContext) =>
  checkedQuery(context.switchToHttp().getRequest<Request>(), dto),
);

/** The result of `readQuery` for a DTO of the route. */
export function checkedQuery<T extends object>({ queries }: Request, dto: Dto<T>): T {
  const query = queries?.get(dto);
  if (!query) throw new Error(`The route does not take the query of ${dto.name}.`);
  return query as T;
}

/**
 * Reads the query of a request, once, for all DTOs of its route. Node bounds the request line, and so the number of
 * parameters.
 * @throws InvalidError naming every parameter that the route does not document, or whose value it does not take
 */
export function readQuery(route: object, request: Request): void {
  const dtos = queriesOf(route);
  const query = request.query as Query;
  const accepted = dtos.flatMap((dto) => [...parametersOf(dto).keys()]);
  const problems = new FieldProblems();
  for (const name of Object.keys(query))
    if (!accepted.includes(name)) problems.addParameter(name, unknownBeside(accepted));
  request.queries = new Map(dtos.map((dto) => [dto, readParameters(dto, query, problems)]));
  problems.throwIfAny();
}

/** @param accepted parameters of the route */
function unknownBeside(accepted: readonly string[]): string {
  if (accepted.length === 0) return 'is not known: this route takes none';
  return `is not known here; ${accepted.join(', ')} can be sent`;
}
