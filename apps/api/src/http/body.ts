import { FieldProblems, limits } from '@app/domain';
import { readArray, readObject } from '@app/domain/http';
import { Body, type PipeTransform } from '@nestjs/common';
import type { Request } from 'express';
import { takesBody } from '../docs/takes';

type Dto = new () => object;

/** The body as one checked object. @param options whether an absent body counts as an empty one. */
export const ValidBody = (dto: Dto, options: { isOptional?: boolean } = {}) => Body(new BodyPipe(dto, options));

/** The body as an array of 1 to 100 checked objects; one invalid element rejects all. */
export const ValidBodyArray = (dto: Dto) => Body(new BodyPipe(dto, { array: true }));

/**
 * Checks a body against a DTO: sizes, types, limits, unknown fields, with all problems at once as RFC 6901 pointers. It
 * reads the parsed JSON value in one pass, and creates nothing from it before its size is checked.
 */
export class BodyPipe implements PipeTransform {
  constructor(
    private readonly dto: Dto,
    private readonly options: { array?: boolean; isOptional?: boolean } = {},
  ) {}

  /** @throws InvalidError naming at most twenty invalid fields. */
  transform(body: unknown): object {
    const problems = new FieldProblems();
    const read = this.read(body === undefined && this.options.isOptional ? {} : body, problems);
    problems.throwIfAny();
    return read as object;
  }

  private read(body: unknown, problems: FieldProblems): unknown {
    if (body === undefined) return problems.add('', undefined, 'must be sent');
    return this.options.array
      ? readArray(this.dto, body, '', problems, { min: 1, max: limits.arrayLength })
      : readObject(this.dto, body, '', problems);
  }
}

/**
 * Refuses any content in the body of a POST that documents none.
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
