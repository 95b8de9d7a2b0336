import * as fc from 'fast-check';
import { maxLevels } from '../defence/json-scan';
import { fingerprintOf } from './idempotency.interceptor';

describe(fingerprintOf.name, () => {
  const of = (body: unknown, target = '/v1/finetunes') => fingerprintOf('POST', target, body);

  it('is the same for the same JSON value, whatever the white space and the order of keys', () => {
    const reversed = (value: unknown): unknown => {
      if (typeof value !== 'object' || value === null) return value;
      if (Array.isArray(value)) return value.map(reversed);
      return Object.fromEntries(
        Object.entries(value)
          .reverse()
          .map(([key, child]) => [key, reversed(child)]),
      );
    };
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
        const text = JSON.stringify(value, undefined, 3);
        expect(of(JSON.parse(text))).toBe(of(reversed(value)));
      }),
    );
  });

  it('differs where the value differs', () => {
    const bodies = [
      undefined,
      null,
      '',
      'null',
      0,
      [],
      {},
      [[]],
      [{}],
      { a: 1 },
      { a: '1' },
      { a: [1] },
      [1, 2],
      [2, 1],
      [12],
    ];
    expect(new Set(bodies.map((body) => of(body))).size).toBe(bodies.length);
    expect(of({ 'a":1,"b': 1 })).not.toBe(of({ a: 1, b: 1 }));
    expect(of({})).not.toBe(of({}, '/v1/prompts/collections'));
  });

  it('reads a body as deep as its scan allows', () => {
    const nested = (depth: number): unknown => JSON.parse(`${'['.repeat(depth)}${']'.repeat(depth)}`);
    expect(of(nested(maxLevels))).not.toBe(of(nested(maxLevels - 1)));
  });
});
