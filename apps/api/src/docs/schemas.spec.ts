import type { OpenAPIObject } from '@nestjs/swagger';
import { named, unwrapped } from './schemas';

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
