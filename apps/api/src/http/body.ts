import type { FieldProblem } from '@app/domain';
import { InvalidError, limits } from '@app/domain';
import { Body } from '@nestjs/common';
import type { PipeTransform } from '@nestjs/common';
import { plainToInstance } from 'class-transformer';
import type { ValidationError } from 'class-validator';
import { validateSync } from 'class-validator';

type Dto = new () => object;

/** A required field whose absence has a stable code of its own, by the last part of its pointer. */
const missingCodes: Readonly<Record<string, string>> = { prompt: 'PromptMissing' };
const forbiddenKeys: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

/** Deeper than any body that is valid. */
const maxDepth = 16;

/** The body as one checked object. */
export const ValidBody = (dto: Dto) => Body(new BodyPipe(dto));

/** The body as an array of 1 to 100 checked objects; one bad element refuses all. */
export const ValidBodyArray = (dto: Dto) => Body(new BodyPipe(dto, { array: true }));

/** Checks a body against a DTO: types, bounds, unknown fields, all problems at once with RFC 6901 pointers. */
export class BodyPipe implements PipeTransform {
  constructor(
    private readonly dto: Dto,
    private readonly options: { array?: boolean } = {},
  ) {}

  /** @throws InvalidError naming every field that is wrong. */
  transform(body: unknown): object {
    if (this.options.array) return this.checkArray(body);
    const { instance, problems } = this.check(body, '');
    if (problems.length > 0) refuse(body, problems);
    return instance;
  }

  private checkArray(body: unknown): object[] {
    if (!Array.isArray(body)) refuse(body, [{ pointer: '', message: 'must be an array of objects' }]);
    if (body.length < 1 || body.length > limits.arrayLength)
      refuse(body, [{ pointer: '', message: `must have 1 to ${limits.arrayLength} elements, got ${body.length}` }]);
    const checked = body.map((element: unknown, index) => this.check(element, `/${index}`));
    const problems = checked.flatMap((each) => each.problems);
    if (problems.length > 0) refuse(body, problems);
    return checked.map((each) => each.instance);
  }

  private check(value: unknown, pointer: string): { instance: object; problems: FieldProblem[] } {
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      return { instance: {}, problems: [{ pointer, message: 'must be a JSON object' }] };
    const hostile = hostileKeys(value, pointer);
    if (hostile.length > 0) return { instance: {}, problems: hostile };
    const instance = plainToInstance(this.dto, value);
    const errors = validateSync(instance, { whitelist: true, forbidNonWhitelisted: true, forbidUnknownValues: true });
    return { instance, problems: errors.flatMap((error) => flatten(error, pointer)) };
  }
}

/** Keys and depths that must not reach the transformation to an instance. */
function hostileKeys(root: object, pointer: string): FieldProblem[] {
  const problems: FieldProblem[] = [];
  const open: { node: object; pointer: string; field: string; depth: number }[] = [
    { node: root, pointer, field: pointer, depth: 0 },
  ];
  for (let next = open.pop(); next && problems.length < 20; next = open.pop()) {
    if (next.depth > maxDepth)
      return [{ pointer: next.field, message: `must have at most ${limits.metadataDepth} levels` }];
    for (const [key, child] of Object.entries(next.node) as [string, unknown][]) {
      const at = `${next.pointer}/${escapePointer(key)}`;
      const field = next.depth === 0 ? at : next.field;
      const inMetadata = /(^|\/)metadata(\/|$)/.test(next.pointer);
      // The transformation drops what every object has anyway, such as toString, before it could be refused.
      if (forbiddenKeys.has(key) || (!inMetadata && key in Object.prototype)) {
        problems.push({
          pointer: inMetadata ? field : at,
          message: inMetadata ? `must not have a key named "${key}"` : 'is not a known field',
        });
      } else if (typeof child === 'object' && child !== null)
        open.push({ node: child, pointer: at, field, depth: next.depth + 1 });
    }
  }
  return problems;
}

function flatten(error: ValidationError, parent: string): FieldProblem[] {
  const pointer = `${parent}/${escapePointer(error.property)}`;
  const nested = (error.children ?? []).flatMap((child) => flatten(child, pointer));
  const constraints = error.constraints ?? {};
  if (constraints.whitelistValidation !== undefined) return [{ pointer, message: 'is not a known field' }];
  const { nestedValidation, ...own } = constraints;
  const message = Object.values(own)[0] ?? nestedValidation;
  if (nested.length > 0 && Object.keys(own).length === 0) return nested;
  return [{ pointer, message: error.value === undefined ? 'is required' : (message ?? 'is not valid') }];
}

function refuse(body: unknown, problems: readonly FieldProblem[]): never {
  const missing = problems.find(
    ({ pointer, message }) => message === 'is required' && missingCodes[pointer.split('/').at(-1) ?? ''],
  );
  const code = missing ? missingCodes[missing.pointer.split('/').at(-1) ?? ''] : 'ValidationFailed';
  const [first] = problems;
  const where = first.pointer === '' ? 'The body' : `"${first.pointer}"`;
  const what = body === undefined ? 'must be sent' : first.message;
  throw new InvalidError(
    code,
    `${where} ${what}${problems.length > 1 ? `, and ${problems.length - 1} more` : ''}.`,
    problems,
  );
}

function escapePointer(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}
