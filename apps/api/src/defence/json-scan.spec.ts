import * as fc from 'fast-check';
import { maxContainers, maxFields, maxLevels, maxMembers, scanJson } from './json-scan';

describe(scanJson.name, () => {
  const scan = (text: string) => scanJson(Buffer.from(text));
  const object = (fields: number) => `{${Array.from({ length: fields }, (_, i) => `"k${i}":0`).join()}}`;
  const nested = (levels: number) => `${'[{"a":'.repeat(levels / 2)}1${'}]'.repeat(levels / 2)}`;

  it('lets any JSON of fewer fields, levels and objects pass', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 8 }), fc.constantFrom(undefined, 2), (value, space) => {
        expect(scan(JSON.stringify(value, undefined, space))).toBeUndefined();
      }),
    );
  });

  it('counts the fields of each object alone, and none in texts', () => {
    expect(scan(`[${object(maxMembers)},${object(maxMembers)}]`)).toBeUndefined();
    expect(scan(JSON.stringify({ prompt: '"{[:\\'.repeat(maxMembers + 1) }))).toBeUndefined();
    expect(scan(`{"metadata":{"a":[${object(maxMembers + 1)}]}}`)).toEqual({
      message: 'must have no object of more than 3000 fields',
    });
  });

  it('counts levels of what is closed', () => {
    expect(scan(nested(maxLevels))).toBeUndefined();
    expect(scan(nested(maxLevels + 2))).toEqual({ message: 'must have at most 1000 levels' });
    expect(scan('['.repeat(10_000))).toBe('malformed');
    expect(scan(']')).toBe('malformed');
  });

  it('counts the fields of all objects together', () => {
    const many = (fields: number) =>
      `[${Array.from({ length: fields / 2 }, (_, i) => `{"a${i}":1,"b${i}":2}`).join()}]`;
    expect(scan(many(maxFields))).toBeUndefined();
    expect(scan(many(maxFields + 2))).toEqual({ message: 'must have at most 20000 fields' });
  });

  it('counts objects and arrays together', () => {
    const many = (each: string, count: number) => `[${Array.from({ length: count - 1 }, () => each).join()}]`;
    expect(scan(many('{}', maxContainers))).toBeUndefined();
    for (const each of ['{}', '[]'])
      expect(scan(many(each, maxContainers + 1))).toEqual({ message: 'must have at most 50000 objects and arrays' });
  });
});
