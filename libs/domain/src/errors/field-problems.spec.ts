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
      { message: 'and 89980 more' },
    ]);
    expect(some(20).list()).toHaveLength(20);
  });

  it.each([
    [1, '"/styles/0" is wrong.'],
    [2, '"/styles/0" is wrong (one of 2 problems).'],
    [90_000, '"/styles/0" is wrong (one of 90000 problems).'],
  ])('puts %d problems in one sentence', (count, sentence) => {
    expect(some(count).sentence()).toBe(sentence);
  });

  it('tells the first problem with a code of its own, wherever it is', () => {
    const problems = some(30);
    expect(problems.code).toBeUndefined();
    problems.add('/styles/30', 'prompt', 'is required', 'PromptMissing');
    problems.add('/styles/31', 'name', 'is required', 'FineTuneNameMissing');
    expect([problems.code, problems.sentence()]).toEqual([
      'PromptMissing',
      '"/styles/30/prompt" is required (one of 32 problems).',
    ]);
    expect(problems.list().at(-1)).toEqual({ message: 'and 12 more' });
  });
});

describe(pointerTo.name, () => {
  it('escapes a key, and shortens a long one', () => {
    expect(pointerTo('/a', 'b/c~d')).toBe('/a/b~1c~0d');
    expect(pointerTo('', 'x'.repeat(490_000))).toBe(`/${'x'.repeat(100)}…`);
    expect(pointerTo('', `${'x'.repeat(99)}𝒳`.padEnd(500, 'x')).isWellFormed()).toBe(true);
  });
});
