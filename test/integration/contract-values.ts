import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A schema of the committed document. */
export interface Schema {
  $ref?: string;
  type?: string | string[];
  enum?: string[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  format?: string;
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  minItems?: number;
  maxItems?: number;
}

/** A value, and its name in test names. */
type Named = readonly [label: string, value: unknown];

/** Accepted and rejected values of a field; null and absence are handled separately. */
export interface Values {
  good: readonly Named[];
  bad: readonly Named[];
}

const { components } = JSON.parse(readFileSync(join(__dirname, '..', '..', 'openapi.json'), 'utf8')) as {
  components: { schemas: Record<string, Schema> };
};

/** The schema that a reference names, and the one besides null. */
export function resolve(schema: Schema): Schema {
  const { $ref, anyOf } = schema;
  if ($ref) return resolve(components.schemas[$ref.split('/').at(-1)!]);
  return anyOf?.some(({ type }) => type === 'null') ? resolve(anyOf[0]) : schema;
}
const typeOf = ({ type }: Schema): string | undefined => [type].flat().find((each) => each !== 'null');

const others: readonly Named[] = [
  ['a string', 'x'],
  ['a number', 7],
  ['true', true],
  ['an array', [1]],
  ['an object', { a: 1 }],
];
const allBut = (...labels: string[]): readonly Named[] => others.filter(([label]) => !labels.includes(label));
/** With the name of the Fine-Tune, and of as few tokens as a prompt may have: of white space CLIP reads nothing. */
const fill = (length: number): string => (length < 1000 ? 'x'.repeat(length) : `robot${' '.repeat(length - 6)}x`);

function ofString({ enum: words, format, pattern, minLength = 0, maxLength = 0 }: Schema): Values {
  const wrong = allBut('a string');
  if (words)
    return {
      good: words.map((word) => [word, word]),
      bad: [...wrong, ['another word', '?'], ['upper case', words[0].toUpperCase()], ['nothing', '']],
    };
  if (format === 'uri') return { good: urls.good, bad: [...wrong, ['nothing', ''], ...urls.bad] };
  const tooLong: readonly Named[] = [['one character too many', fill(maxLength + 1)]];
  if (pattern?.startsWith('^[a-z0-9]'))
    return {
      good: ['sd1.5', 'sd2.1', 'shapes'].map((name) => [name, name]),
      bad: [...wrong, ...tooLong, ['another word', '?'], ['upper case', 'SD1.5'], ['nothing', '']],
    };
  const candidates: readonly Named[] = [
    ['the longest', fill(maxLength)],
    ['characters of four bytes', `${fill(maxLength - 2)}𝒳`],
    ['nothing', ''],
    ['white space', ' \n '],
    ['a letter of another script', '机'],
    ['a digit among signs', '-7-'],
    ['no letter and no digit', '-_!-'],
  ].filter(([label]) => maxLength < 1000 || !/script|sign|letter/.test(label)) as unknown as Named[];
  const fits = ([, text]: Named): boolean =>
    (text as string).length >= minLength && new RegExp(pattern ?? '', 'u').test(text as string);
  return {
    good: candidates.filter(fits),
    bad: [
      ...wrong,
      ...tooLong,
      ...candidates.filter((each) => !fits(each)),
      ['a NUL', `${fill(5)}\0`],
      ['half of a surrogate pair', `${fill(5)}\ud800`],
    ],
  };
}

/** Words, and ratios as a pattern. */
function ofShape({ anyOf = [] }: Schema): Values {
  const words = anyOf.flatMap((each) => each.enum ?? []);
  const wrong = ['?', words[0].toUpperCase(), '', '5:1', '16:0', '65:64', '1.5:1', '16 : 9'];
  return {
    good: [...words, '16:9', '1:4', '64:63'].map((word) => [word, word]),
    bad: [...allBut('a string'), ...wrong.map((word) => [`"${word}"`, word] as const)],
  };
}

function ofNumber({ minimum = 0, maximum = 0 }: Schema, step: number): Values {
  return {
    good: [
      ['the least', minimum],
      ['the most', maximum],
      ...(step < 1 ? [['a fraction', minimum + 0.125] as const] : []),
    ],
    bad: [
      ...allBut('a number'),
      ['just below', minimum - step],
      ['just above', maximum + step],
      ['digits', String(maximum)],
      ...(step < 1 ? [] : ([['a fraction', minimum + 0.5]] as const)),
    ],
  };
}

/** A valid object of an array. */
function objectOf({ properties = {} }: Schema): Record<string, string> {
  if (properties.preprocess) return { image: url(), model: 'canny' };
  if (properties.prompt) return { prompt: 'a robot' };
  if (properties.scale) return { id: '{tuned}' };
  return properties.name ? { id: '{prompt}', name: 'night' } : { id: '{prompt}' };
}

function ofArray({ items = {}, minItems = 0, maxItems = 0 }: Schema): Values {
  const element = resolve(items);
  const wrong = allBut('an array');
  // Objects have rows of their own.
  const { good, bad } = element.properties ? { good: [], bad: [] } : valuesOf(element);
  const isWord = element.enum ?? (element.anyOf && element.type === 'string');
  const first = good[0]?.[1] ?? objectOf(element);
  // The longest texts together are more than a body may have.
  const value = typeof first === 'string' && first.length > 10_000 ? 'a robot' : first;
  // Pictures of a training have to differ.
  const another = (i: number): unknown =>
    typeof value === 'string' && value.startsWith('http')
      ? `${value.slice(0, -3)}${String(i).padStart(3, '0')}`
      : value;
  const many = (count: number): unknown[] => Array.from({ length: count }, (_, i) => another(i));
  const fewest = many(minItems);
  return {
    good: [['the fewest', fewest] as const, ...(isWord ? [] : [['the most', many(maxItems)] as const])],
    bad: [
      ...wrong,
      ['one too many', many(maxItems + 1)],
      ...(isWord ? [['an empty array', []] as const] : []),
      ...bad.map(
        ([label, wrongOne]) => [`${label} ${isWord ? 'in it' : 'among them'}`, [...fewest.slice(1), wrongOne]] as const,
      ),
    ],
  };
}

/** Of a picture in a larger one; true and a place need that picture, and are tested with it. */
const places: Values = { good: [['false', false]], bad: allBut('true', 'an object') };

/** Accepted and rejected values of a schema. */
export function valuesOf(schema: Schema): Values {
  const known = resolve(schema);
  if (known.oneOf?.some(({ type }) => type === 'object')) return places;
  if (known.oneOf) {
    const all = known.oneOf.map(valuesOf);
    const types = known.oneOf.map(
      (each) => ({ string: 'a string', integer: 'a number', array: 'an array' })[typeOf(each)!]!,
    );
    const own = all.flatMap(({ bad }) => bad).filter(([label]) => !others.some(([other]) => other === label));
    const good = all.flatMap((each) => each.good);
    return {
      good,
      bad: [...allBut(...types), ...own.filter(([label]) => label !== 'digits')],
    };
  }
  if (known.anyOf && known.type === 'string') return ofShape(known);
  // Of all fields only metadata may be anything.
  if (known.anyOf) return metadata;
  const type = typeOf(known);
  if (type === 'string') return ofString(known);
  if (type === 'number') return ofNumber(known, 0.001);
  if (type === 'integer') return ofNumber(known, 1);
  if (type === 'array') return ofArray(known);
  if (type === 'boolean')
    return {
      good: [
        ['true', true],
        ['false', false],
      ],
      bad: [...allBut('true'), ['zero', 0]],
    };
  throw new Error(`No values are known for ${JSON.stringify(schema)}.`);
}

const nested = (levels: number): object => (levels === 1 ? {} : { a: nested(levels - 1) });
const ofBytes = (bytes: number): object => ({ a: 'x'.repeat(bytes - '{"a":""}'.length) });

/** A JSON value of at most 16 KB and 8 levels; its schema has no word for either. */
const metadata: Values = {
  good: [
    ['an empty object', {}],
    ['eight levels', nested(8)],
    ['16 KB', ofBytes(16_384)],
    ['a text of 16 KB', 'x'.repeat(16_382)],
    ['an empty text', ''],
    ['zero', 0],
    ['a number', -0.5],
    ['false', false],
    ['an array', [{}, null]],
    ['all kinds of values', { a: [1, null, true, 'ü', { b: -0.5 }] }],
  ],
  bad: [
    ['nine levels', nested(9)],
    ['nine levels of arrays', { a: [[[[[[[[]]]]]]]] }],
    ['a byte more than 16 KB', ofBytes(16_385)],
    ['a text of a byte more than 16 KB', 'x'.repeat(16_383)],
    ['a text with a NUL', '\0'],
    ['a NUL', { a: [{ b: '\0' }] }],
    ['a NUL in a key', { '\0': 1 }],
    ['half of a surrogate pair', { a: '\udc00' }],
    ['a key named __proto__', JSON.parse('{"__proto__":{}}')],
    ['a key named constructor', { a: [{ constructor: 1 }] }],
    ['a key named prototype', { prototype: 1 }],
  ],
};

const url = (length = 30): string => 'https://pictures.example/'.padEnd(length, 'x');
const urls: Values = {
  good: [
    ['the longest', url(2048)],
    ['http with a port and a query', 'http://pictures.example:8080/x?y=%20#z'],
    ['a host in other letters than those of ASCII', 'https://例え.テスト:8443/x?y=1'],
  ],
  bad: [
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
  ],
};
