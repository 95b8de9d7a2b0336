import { parsePromptWeights } from './prompt-weighting';

describe(parsePromptWeights.name, () => {
  const cases: [string, [string, number][]][] = [
    ['', []],
    ['a cat', [['a cat', 1]]],
    [
      'a (red) cat',
      [
        ['a ', 1],
        ['red', 1.1],
        [' cat', 1],
      ],
    ],
    [
      'a (red:1.3) cat',
      [
        ['a ', 1],
        ['red', 1.3],
        [' cat', 1],
      ],
    ],
    [
      'a (red:.5) cat',
      [
        ['a ', 1],
        ['red', 0.5],
        [' cat', 1],
      ],
    ],
    ['[blurry]', [['blurry', 1 / 1.1]]],
    ['((a))', [['a', 1.1 * 1.1]]],
    [
      '(a (b:2) c:1.5)',
      [
        ['a ', 1.5],
        ['b', 3],
        [' c', 1.5],
      ],
    ],
    ['([a])', [['a', 1]]],
    ['[a:1.3]', [['a:1.3', 1 / 1.1]]],
    ['3:45pm', [['3:45pm', 1]]],
    ['(3:45pm)', [['3:45pm', 1.1]]],
    [String.raw`\(a\) \[b\] c\\d`, [[String.raw`(a) [b] c\d`, 1]]],
    [String.raw`\d`, [[String.raw`\d`, 1]]],
    ['(a b', [['a b', 1.1]]],
    ['a) b]', [['a) b]', 1]]],
    [
      'a) (b:1.2)',
      [
        ['a) ', 1],
        ['b', 1.2],
      ],
    ],
    ['(a:-2)', [['a', -2]]],
    ['(a:99)', [['a', 10]]],
    ['()', []],
    [
      '(a [b) c]',
      [
        ['a ', 1.1],
        ['b', 1],
        [' c', 1 / 1.1],
      ],
    ],
  ];

  it.each(cases)('reads %p', (prompt, expected) => {
    const pieces = parsePromptWeights(prompt);
    expect(pieces.map(({ text }) => text)).toEqual(expected.map(([text]) => text));
    pieces.forEach(({ weight }, i) => expect(weight).toBeCloseTo(expected[i][1], 10));
  });

  it('limits weights however deep brackets nest', () => {
    const [piece] = parsePromptWeights('('.repeat(1990) + 'a');
    expect(piece).toEqual({ text: 'a', weight: 10 });
  });
});
