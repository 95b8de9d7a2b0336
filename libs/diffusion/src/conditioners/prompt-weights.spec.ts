import { parsePromptWeights } from './prompt-weights';

describe(parsePromptWeights.name, () => {
  /** A prompt, and its pieces: a bar between two, a star before a weight other than 1, a slash between two parts. */
  const cases: [string, string][] = [
    ['', ''],
    ['a cat', 'a cat'],
    ['a (red) cat', 'a |red*1.1| cat'],
    ['a (red:1.3) cat', 'a |red*1.3| cat'],
    ['a (red:.5) cat', 'a |red*0.5| cat'],
    ['[blurry]', 'blurry*0.909'],
    ['((a))', 'a*1.21'],
    ['(a (b:2) c:1.5)', 'a *1.5|b*3| c*1.5'],
    ['([a])', 'a'],
    ['[a:1.3]', 'a:1.3*0.909'],
    ['3:45pm', '3:45pm'],
    ['(3:45pm)', '3:45pm*1.1'],
    [String.raw`\(a\) \[b\] c\\d`, String.raw`(a) [b] c\d`],
    [String.raw`\d`, String.raw`\d`],
    ['(a b', 'a b*1.1'],
    ['a) b]', 'a) b]'],
    ['a) (b:1.2)', 'a) |b*1.2'],
    ['(a:-2)', 'a*-2'],
    ['(a:99)', 'a*10'],
    ['()', ''],
    ['(a [b) c]', 'a *1.1|b| c*0.909'],
    ['a BREAK b', 'a / b'],
    ['a,BREAK\nb BREAK', 'a,/\nb /'],
    ['BREAK BREAK a', '/ / a'],
    ['BREAKFAST, outBREAK, BREAK_1, ÉBREAK, break', 'BREAKFAST, outBREAK, BREAK_1, ÉBREAK, break'],
    [String.raw`\(BREAK\)`, '(/)'],
    ['(a BREAK b:1.5) c', 'a *1.5/ b*1.5| c'],
    ['[a](BREAK)b', 'a*0.909/b'],
  ];

  it.each(cases)('reads %p', (prompt, expected) => {
    const rounded = (weight: number) => Math.round(weight * 1000) / 1000;
    const parts = parsePromptWeights(prompt).map((pieces) =>
      pieces.map(({ text, weight }) => (rounded(weight) === 1 ? text : `${text}*${rounded(weight)}`)).join('|'),
    );
    expect(parts.join('/')).toBe(expected);
  });

  it('limits weights however deep brackets nest', () => {
    expect(parsePromptWeights('('.repeat(1990) + 'a')).toEqual([[{ text: 'a', weight: 10 }]]);
  });
});
