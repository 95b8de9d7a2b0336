import { FieldProblems, pointerTo } from './field-problems';

describe(FieldProblems.name, () => {
  const some = (count: number) => {
    const problems = new FieldProblems();
    for (let i = 0; i < count; i++) problems.add('/styles', i, 'is wrong');
    return problems;
  };

  it('lists twenty problems and the number of the others', () => {
    const list = some(90_000).list();
    expect([list.length, list[0], list[19], list[20]]).toEqual([
      21,
      { pointer: '/styles/0', message: 'is wrong' },
      { pointer: '/styles/19', message: 'is wrong' },
      { pointer: '', message: 'and 89980 more' },
    ]);
    expect(some(20).list()).toHaveLength(20);
  });

  it.each([
    [1, '"/styles/0" is wrong.'],
    [2, '"/styles/0" is wrong, and 1 more.'],
    [90_000, '"/styles/0" is wrong, and 89999 more.'],
  ])('puts %d problems in one sentence', (count, sentence) => {
    expect(some(count).sentence()).toBe(sentence);
  });
});

describe(pointerTo.name, () => {
  it('escapes a key, and shortens a long one', () => {
    expect(pointerTo('/a', 'b/c~d')).toBe('/a/b~1c~0d');
    expect(pointerTo('', 'x'.repeat(490_000))).toBe(`/${'x'.repeat(100)}…`);
    expect(pointerTo('', `${'x'.repeat(99)}𝒳`.padEnd(500, 'x')).isWellFormed()).toBe(true);
  });
});
