import { FieldProblems } from '@app/domain';
import * as fc from 'fast-check';
import { findInexact } from './exact-json';

const problemsOf = (text: string) => {
  const problems = new FieldProblems();
  findInexact(text, problems);
  return problems.list();
};
const pointersOf = (text: string) => problemsOf(text).map(({ pointer }) => pointer);

describe(findInexact.name, () => {
  it('finds nothing in what JSON libraries write', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), fc.constantFrom(undefined, 2), (value, space) => {
        expect(problemsOf(JSON.stringify(value, undefined, space))).toEqual([]);
      }),
    );
  });

  it('finds nothing in any double, however it is written', () => {
    const isFinite = { noNaN: true, noDefaultInfinity: true };
    fc.assert(
      fc.property(fc.double(isFinite), fc.integer({ min: 0, max: 16 }), (value, digits) => {
        const spellings = [String(value), value.toExponential(), Number(value.toExponential(digits)).toExponential()];
        for (const text of spellings.filter((each) => Number.isFinite(Number(each)) && !Object.is(Number(each), -0)))
          expect(problemsOf(text)).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });

  it.each([
    '0.1',
    '1.10',
    '100',
    '1e2',
    '0.5E-3',
    '-7.25',
    '0e999',
    '9007199254740992',
    '123456789012345000000',
    '-12',
  ])('takes %s, which a double holds', (text) => expect(problemsOf(`[${text}]`)).toEqual([]));

  it.each([
    ...['1234567890123456789', '1e400', '-1e400', '1e-400', '0.1000000000000000055', '-0', '-0.0', '-0e5'],
    ...['9007199254740993', '123456789012345678.5', '3.14159265358979323846'],
  ])('refuses %s, which would be changed', (text) => {
    expect(pointersOf(`{"metadata":{"a":[1,{"b/~":${text}}]}}`)).toEqual(['/metadata/a/1/b~1~0']);
  });

  it('says what would become of a number', () => {
    expect(problemsOf('[1234567890123456789]')).toEqual([
      {
        pointer: '/0',
        message:
          'must be a number that a double holds as it is written; got 1234567890123456789, which would become 1234567890123456800',
      },
    ]);
    expect(problemsOf('{"metadata":{"a":1e400}}')).toEqual([
      {
        pointer: '/metadata/a',
        message:
          'must be a number that a double holds as it is written, or a string; got 1e400, which is beyond its range',
      },
    ]);
  });

  it('refuses a key that an object has twice, however it is written', () => {
    expect(problemsOf(String.raw`{"a":1,"b":{"a":2,"\u0061":3},"a":{}}`)).toEqual([
      { pointer: '/b/a', message: 'is sent twice' },
      { pointer: '/a', message: 'is sent twice' },
    ]);
    expect(problemsOf('[{"a":"{\\"a\\":1"},{"a":[{"a":1},{"a":2}]}]')).toEqual([]);
  });

  it('lists twenty of very many, and takes little time for them', () => {
    const before = process.cpuUsage();
    for (const text of [
      `[${'1e999,'.repeat(160_000)}0]`,
      `${'[{"k":'.repeat(400)}{${'"a":0,'.repeat(19_000)}"a":1}${'}]'.repeat(400)}`,
    ]) {
      const found = problemsOf(text);
      expect(found).toHaveLength(21);
    }
    const { user, system } = process.cpuUsage(before);
    // A hang, or a time that grows with the square of the size, would take minutes.
    expect((user + system) / 1000).toBeLessThan(10_000);
  });
});
