import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PromptRules, readPromptRules } from './prompt-rules';

describe(PromptRules.name, () => {
  const file = join(mkdtempSync(join(tmpdir(), 'rules-')), 'rules.txt');
  const rulesOf = (text: string): Promise<PromptRules> => {
    writeFileSync(file, text);
    return readPromptRules(file);
  };
  const lines = `# What is not drawn here
gun, rifle*: Weapons are not drawn here.
mickey mouse: Ask for a mouse of your own.

*phobic: Be kind.
*裸*: 不可以。
café: No coffee: it is late.
`;

  it.each([
    ['a gun', 'Weapons are not drawn here.'],
    ['A GUN.', 'Weapons are not drawn here.'],
    ['(gun:1.3) on a table', 'Weapons are not drawn here.'],
    ['g\u200bun', 'Weapons are not drawn here.'],
    ['ｇｕｎ', 'Weapons are not drawn here.'],
    ['two riflemen', 'Weapons are not drawn here.'],
    ['Mickey\n  Mouse', 'Ask for a mouse of your own.'],
    ['a xenophobic slogan', 'Be kind.'],
    ['一个裸体', '不可以。'],
    ['a cafe', 'No coffee: it is late.'],
    ['a cafe\u0301', 'No coffee: it is late.'],
  ])('refuse %j', async (text, sentence) => {
    expect((await rulesOf(lines)).refusalOf(text)).toBe(sentence);
  });

  it.each(['guns', 'begun', 'a rif', 'mickey and a mouse', 'phobias', '', '***'])('let %j pass', async (text) => {
    expect((await rulesOf(lines)).refusalOf(text)).toBeUndefined();
  });

  it('say the sentence of the first rule in the file, of several that forbid a text', async () => {
    const rules = await rulesOf('b a: first\nb: second\na b a b: third');
    expect(rules.refusalOf('b a b a b')).toBe('first');
    expect((await rulesOf('a b c: long\nb: short')).refusalOf('a b d')).toBe('short');
  });

  it('look at each character of a text once, however many rules almost fit', async () => {
    const rules = await rulesOf(
      Array.from({ length: 5_000 }, (_, i) => `*${'a'.repeat((i % 190) + 1)}b${i}: no`).join('\n'),
    );
    const startedAt = performance.now();
    expect(rules.refusalOf('a'.repeat(1_000_000))).toBeUndefined();
    // By the length of the rules it would take minutes.
    expect(performance.now() - startedAt).toBeLessThan(20_000);
  });

  it.each([
    ['gun', 'whose line 1 must be words or phrases, a colon and a sentence'],
    ['# x\ngun:', 'whose line 2 must be words'],
    ['gun, : No.', 'whose line 1 has "" where a word or phrase is needed.'],
    ['*: No.', 'whose line 1 has "*" where a word or phrase is needed.'],
    ['g*n: No.', 'whose line 1 has a * inside of "g*n", which may be at an end alone.'],
  ])('name the line of %j that cannot be used', async (text, problem) => {
    await expect(rulesOf(text)).rejects.toThrow(`PROMPT_RULES is ${file}, ${problem}`);
  });

  it('name a file that is not there', async () => {
    await expect(readPromptRules('/nowhere/rules')).rejects.toThrow(
      'PROMPT_RULES is /nowhere/rules, which cannot be read (ENOENT).',
    );
  });
});
