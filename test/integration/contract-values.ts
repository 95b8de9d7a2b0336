/** A value, and its name in test names. */
export type Named = readonly [label: string, value: unknown];

/** Accepted and rejected values of a field; null and absence are handled separately. */
export interface Kind {
  good: readonly Named[];
  bad: readonly Named[];
  /** The field's schema in the OpenAPI document. */
  bounds: Readonly<Record<string, unknown>>;
}

const others: readonly Named[] = [
  ['a string', 'x'],
  ['a number', 7],
  ['true', true],
  ['an array', [1]],
  ['an object', { a: 1 }],
];
const allBut = (...labels: string[]): readonly Named[] => others.filter(([label]) => !labels.includes(label));

/** A string of `min` to `max` characters; `fill` makes one of a given length. */
export function text(min: number, max: number, fill = (length: number) => 'x'.repeat(length)): Kind {
  return {
    good: [
      ['the longest', fill(max)],
      ...(min === 0 ? [['nothing', ''] as const] : []),
      ['characters of four bytes', `${fill(max - 2)}𝒳`],
    ],
    bad: [
      ...allBut('a string'),
      ...(min > 0
        ? ([
            ['nothing', ''],
            ['white space', ' \n '],
          ] as const)
        : []),
      ['one character too many', fill(max + 1)],
      ['a NUL', `${fill(5)}\0`],
      ['half of a surrogate pair', `${fill(5)}\ud800`],
    ],
    bounds: { type: 'string', minLength: min, maxLength: max },
  };
}

/** Such a string that also needs a letter or a digit. */
export function word(max: number): Kind {
  const kind = text(1, max);
  return {
    ...kind,
    good: [...kind.good, ['a letter of another script', '机'], ['a digit among signs', '-7-']],
    bad: [...kind.bad, ['no letter and no digit', '-_!-'], ['nothing but a hyphen', '-']],
  };
}

/** A number from `min` to `max`. */
export function number(min: number, max: number): Kind {
  return {
    good: [
      ['the least', min],
      ['the most', max],
      ['a fraction', min + 0.125],
    ],
    bad: [...allBut('a number'), ['just below', min - 0.001], ['just above', max + 0.001], ['digits', String(max)]],
    bounds: { type: 'number', minimum: min, maximum: max },
  };
}

/** A whole number from `min` to `max`. */
export function integer(min: number, max: number): Kind {
  return {
    good: [
      ['the least', min],
      ['the most', max],
    ],
    bad: [
      ...allBut('a number'),
      ['just below', min - 1],
      ['just above', max + 1],
      ['a fraction', min + 0.5],
      ['digits', String(max)],
      ['more than a double holds exactly', Number.MAX_VALUE],
    ],
    bounds: { type: 'integer', minimum: min, maximum: max },
  };
}

/** True or false. */
export const flag: Kind = {
  good: [
    ['true', true],
    ['false', false],
  ],
  bad: [...allBut('true'), ['zero', 0]],
  bounds: { type: 'boolean' },
};

/** One of the words that a field accepts. */
export function words(...good: string[]): Kind {
  return {
    good: good.filter((word) => word.length < 64).map((word) => [word, word]),
    bad: [
      ...allBut('a string'),
      ['a word it does not know', '?'],
      ['upper case', good[0].toUpperCase()],
      ['nothing', ''],
    ],
    bounds: {},
  };
}

const shapes = ['square', 'portrait', 'landscape'];

/** A picture shape: a word, or an array with one. */
export const aspectRatio: Kind = {
  good: shapes.flatMap((shape): Named[] => [
    [shape, shape],
    [`[${shape}]`, [shape]],
  ]),
  bad: [...others, ['no shape', []], ['two shapes', ['square', 'square']], ['an array in an array', [['square']]]],
  bounds: {},
};

const nested = (levels: number): object => (levels === 1 ? {} : { a: nested(levels - 1) });
const ofBytes = (bytes: number): object => ({ a: 'x'.repeat(bytes - '{"a":""}'.length) });

/** A JSON object of at most 16 KB and 8 levels. */
export const metadata: Kind = {
  good: [
    ['an empty object', {}],
    ['eight levels', nested(8)],
    ['16 KB', ofBytes(16_384)],
    ['all kinds of values', { a: [1, null, true, 'ü', { b: -0.5 }] }],
  ],
  bad: [
    ...allBut('an object'),
    ['nine levels', nested(9)],
    ['nine levels of arrays', { a: [[[[[[[[]]]]]]]] }],
    ['a byte more than 16 KB', ofBytes(16_385)],
    ['a NUL', { a: [{ b: '\0' }] }],
    ['a NUL in a key', { '\0': 1 }],
    ['half of a surrogate pair', { a: '\udc00' }],
    ['a key named __proto__', JSON.parse('{"__proto__":{}}')],
    ['a key named constructor', { a: [{ constructor: 1 }] }],
    ['a key named prototype', { prototype: 1 }],
  ],
  bounds: { type: 'object' },
};

const url = (length = 30) => 'https://pictures.example/'.padEnd(length, 'x');
const badUrls: readonly Named[] = [
  ['one character too many', url(2049)],
  ['no URL', 'nowhere'],
  ['a path', '/hook'],
  ['another scheme', 'ftp://pictures.example/x'],
  ['a script', 'javascript:alert(1)'],
  ['a user name', 'https://me@pictures.example/'],
  ['a space', 'https://pictures.example/a b'],
  ['a NUL', 'https://pictures.example/\0'],
  ['the port 0', 'https://a.example:0/'],
  ['a port that is too large', 'https://a.example:99999/'],
  ['no host', 'https:///hook'],
  ['a letter that is not percent-encoded', 'https://a.example/bücher'],
  ['a wrong escape', 'https://a.example/%zz'],
];

/** Absolute http and https URLs of at most 2048 characters. */
export const urls = {
  one: {
    good: [
      ['the longest', url(2048)],
      ['http with a port and a query', 'http://pictures.example:8080/x?y=%20#z'],
      ['a host in other letters than those of ASCII', 'https://例え.テスト:8443/x?y=1'],
    ],
    bad: [...allBut('a string'), ['nothing', ''], ...badUrls],
    bounds: { type: 'string', maxLength: 2048 },
  } satisfies Kind,
  many: (min: number, max: number): Kind => ({
    good: [
      ['the fewest', Array<string>(min).fill(url())],
      ['the most', Array<string>(max).fill(url())],
    ],
    bad: [
      ...allBut('an array'),
      ['one too many', Array<string>(max + 1).fill(url())],
      ...badUrls.map(([label, value]) => [`${label} among them`, [...Array<string>(min).fill(url()), value]] as const),
      ['a number among them', [...Array<string>(min).fill(url()), 7]],
    ],
    bounds: { type: 'array', minItems: min, maxItems: max },
  }),
};

/** An array of `min` to `max` objects like `element`. */
export function objects(min: number, max: number, element: object): Kind {
  return {
    good: [
      ['the fewest', Array<object>(min).fill(element)],
      ['the most', Array<object>(max).fill(element)],
    ],
    bad: [...allBut('an array'), ['one too many', Array<object>(max + 1).fill(element)]],
    bounds: { type: 'array', minItems: min, maxItems: max },
  };
}
