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
か: kana
死体、銃，刀: だめ
ミッキー・マウス: 名前
가*: Hangul
क: Devanagari
كتب: Arabic
май: Cyrillic
straße: German
λογος*: Greek
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
    ['g\u3164un', 'Weapons are not drawn here.'],
    ['g\u0007u\u0336n', 'Weapons are not drawn here.'],
    ['mickey\u0085mouse', 'Ask for a mouse of your own.'],
    ['(mickey:1.2) (mouse : .8 )', 'Ask for a mouse of your own.'],
    ...['g()un', '(g:1)un', 'a [(g)]un'].map((text) => [text, 'Weapons are not drawn here.']),
    ['か', 'kana'],
    ...['死体', '死 体がある', '銃を持つ', '一丁の銃'].map((text) => [text, 'だめ']),
    ['ミッキー・マウスの絵', '名前'],
    ['ミッキーマウス', '名前'],
    ['\u1100\u200b\u1161방', 'Hangul'],
    ['क', 'Devanagari'],
    ['\u0643\u064f\u062a\u064f\u0628', 'Arabic'],
    ['МА\u0301Й', 'Cyrillic'],
    ['STRASSE', 'German'],
    ['STRAẞE', 'German'],
    ['λόγοι και λογοσύνη', 'Greek'],
    ['ΛΌΓΟΣ', 'Greek'],
  ])('refuse %j', async (text, sentence) => {
    expect((await rulesOf(lines)).refusalOf(text)).toBe(sentence);
  });

  it.each([
    ...['guns', 'begun', 'a rif', 'mickey and a mouse', 'phobias', '', '***'],
    // Other letters, not others of their accents.
    ...['が', '각', 'कि', 'أكتب', 'маи'],
  ])('let %j pass', async (text) => {
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
    ['gun', 'Line 1 must be words or phrases, a colon and a sentence: "gun, rifle*: No weapons."'],
    ['# x\ngun:', 'Line 2 must be words or phrases, a colon and a sentence: "gun, rifle*: No weapons."'],
    ['gun, : No.', 'Line 1 has "" where a word or phrase is needed.'],
    ['*: No.', 'Line 1 has "*" where a word or phrase is needed.'],
    ['g*n: No.', 'Line 1 has a * inside of "g*n", which may be at an end alone.'],
    [
      'gun: No.\nc++: No.',
      'Line 2 has "c++", of which only letters and digits are compared: write "c", if that is what you mean.',
    ],
  ])('name the line of %j that cannot be used', async (text, problem) => {
    await expect(rulesOf(text)).rejects.toThrow(
      `PROMPT_RULES is ${file}, and has lines that cannot be used:\n${problem}`,
    );
  });

  it('name each line that cannot be used, and of very many the first', async () => {
    const refused = rulesOf('gun\nrose: No.\n'.repeat(30));
    const { message } = await refused.then(() => new Error('It is taken.')).catch((error: Error) => error);
    const lines = message.split('\n');
    expect(lines.slice(1, 4).map((line) => line.slice(0, 12))).toEqual([
      'Line 1 must ',
      'Line 3 must ',
      'Line 5 must ',
    ]);
    expect([lines.length, lines.at(-1)]).toEqual([22, 'There are 10 more.']);
  });

  it('pass over the mark at the beginning of a file', async () => {
    expect((await rulesOf('\ufeff# Comments\ngun: No.')).refusalOf('a gun')).toBe('No.');
  });

  it('name a file that is not there', async () => {
    await expect(readPromptRules('/nowhere/rules')).rejects.toThrow(
      'PROMPT_RULES is /nowhere/rules, which cannot be read (ENOENT).',
    );
  });
});
