import { parametersOf } from '@app/domain/http';
import { applyDecorators, SetMetadata } from '@nestjs/common';
import { ApiBody, type ApiBodyOptions, ApiQuery } from '@nestjs/swagger';

const queriesKey = 'takesQueries';
const bodyKey = 'takesBody';

type Dto = new () => object;

/** Says, also in the document, that a route takes the query parameters of a DTO. It can be repeated. */
export const TakesQuery = (dto: Dto): MethodDecorator =>
  applyDecorators(
    (_prototype: object, _name: string | symbol, { value: route }: PropertyDescriptor) =>
      // The decorators of a route run from the last to the first, and the DTOs keep the order of the source.
      Reflect.defineMetadata(queriesKey, [dto, ...queriesOf(route as object)], route as object),
    ...[...parametersOf(dto)].map(([name, { description, schema }]) =>
      ApiQuery({ name, required: false, description, schema }),
    ),
  );

/** The DTOs of the query parameters that a route takes. */
export function queriesOf(route: object): readonly Dto[] {
  return (Reflect.getMetadata(queriesKey, route) as Dto[] | undefined) ?? [];
}

/** Says, also in the document, that a route takes a body. */
export const TakesBody = (options: ApiBodyOptions): MethodDecorator =>
  applyDecorators(ApiBody(options), SetMetadata(bodyKey, true));

export function takesBody(route: object): boolean {
  return Reflect.getMetadata(bodyKey, route) === true;
}
