import type { OpenAPIObject } from '@nestjs/swagger';
import { named, shareErrors, unwrapped } from './schemas';
import type { Operation, Responses } from './schemas';

const reference = { $ref: '#/components/schemas/Image' };

describe(named, () => {
  const document = (...names: string[]) =>
    ({ components: { schemas: Object.fromEntries(names.map((name) => [name, {}])) } }) as unknown as OpenAPIObject;

  it('removes the ending Dto from the names of schemas', () => {
    expect(named(document('ImageDto', 'ErrorCode'))).toEqual(document('Image', 'ErrorCode'));
  });

  it('refuses two schemas that would have one name', () => {
    expect(() => named(document('Image', 'ImageDto'))).toThrow('The schemas Image and ImageDto');
  });
});

describe(unwrapped, () => {
  it('puts a single reference beside its description, and leaves several', () => {
    expect(unwrapped({ a: { description: 'x', allOf: [reference] } })).toEqual({
      a: { description: 'x', ...reference },
    });
    expect(unwrapped({ allOf: [reference, reference] })).toEqual({ allOf: [reference, reference] });
  });

  it('unwraps what lies inside of an unwrapped schema too', () => {
    const inner = { properties: { first: { allOf: [reference] } } };
    expect(unwrapped({ allOf: [inner] })).toEqual({ properties: { first: reference } });
    expect(unwrapped({ allOf: [{ allOf: [reference] }] })).toEqual(reference);
  });
});

const operation = (description: string): Operation => ({
  operationId: 'draw',
  responses: {
    '201': { description: 'Done.' },
    '404': { description, content: { 'application/problem+json': {} } },
  },
});

describe(shareErrors, () => {
  it('replaces the same error of several routes with one, and no other response', () => {
    const shared: Responses = {};
    const both = [operation('Nothing.'), operation('Nothing.')];
    for (const each of both) shareErrors(each, shared);
    expect(shared).toEqual({ Problem404: operation('Nothing.').responses['404'] });
    for (const { responses } of both)
      expect(responses).toEqual({
        '201': { description: 'Done.' },
        '404': { $ref: '#/components/responses/Problem404' },
      });
  });

  it('refuses two that differ', () => {
    const shared: Responses = {};
    shareErrors(operation('Nothing.'), shared);
    expect(() => shareErrors(operation('Nothing here.'), shared)).toThrow('draw documents the error 404');
  });
});
