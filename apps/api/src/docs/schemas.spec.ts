import type { OpenAPIObject } from '@nestjs/swagger';
import { named, unwrapped } from './schemas';

const reference = { $ref: '#/components/schemas/Image' };

describe(named, () => {
  const document = (...names: string[]) =>
    ({ components: { schemas: Object.fromEntries(names.map((name) => [name, {}])) } }) as unknown as OpenAPIObject;

  it('takes Dto from the names', () => {
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

  it('does so inside of what it has taken out', () => {
    const inner = { properties: { first: { allOf: [reference] } } };
    expect(unwrapped({ allOf: [inner] })).toEqual({ properties: { first: reference } });
    expect(unwrapped({ allOf: [{ allOf: [reference] }] })).toEqual(reference);
  });
});
