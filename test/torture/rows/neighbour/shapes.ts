/** A small random number generator that repeats with a seed (mulberry32). */
export class Random {
  constructor(private state: number) {}

  /** In [0, 1). */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  /** An integer from `min` to `max`. */
  integer(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  /** Small numbers are as likely as large ones. */
  magnitude(min: number, max: number): number {
    return Math.round(min * (max / min) ** this.next());
  }

  pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.next() * list.length)];
  }
}

/** A random input. */
export interface Shape {
  name: string;
  path: string;
  body: Buffer;
  headers: Record<string, string>;
  chunked: boolean;
}

/** Just below the limit of a body. */
const maxBytes = 990_000;

/** Fills `bytes` with the output of `one`, separated by commas. */
function list(bytes: number, one: (index: number) => string): string {
  const parts: string[] = [];
  for (let length = 0; ;) {
    const part = one(parts.length);
    length += Buffer.byteLength(part) + 1;
    if (length > bytes) return parts.join();
    parts.push(part);
  }
}

const quoted = (text: string): string => JSON.stringify(text);

/** Makes a JSON value of about this many bytes, with a short description. */
type Kind = (random: Random, bytes: number) => { value: string; name: string };

const alphabets = [
  ' -',
  'a ',
  'aA-_',
  '\u0301\u0300e',
  '\u{1f600}\u200d',
  'ﷺ',
  '\t\n\r ',
  '{}"\\',
  'İıß',
  '()[]:.5',
  '漢字 ',
];

function text(random: Random, length: number, alphabet = random.pick(alphabets)): string {
  const letters = [...alphabet];
  let made = '';
  while (made.length < length) made += random.pick(letters);
  return made;
}

/** A unique key of about this many bytes. */
const key = (random: Random, length: number, index: number): string => quoted(`${'k'.repeat(length)}${index}`);

const kinds: Kind[] = [
  (random, bytes) => {
    const [open, close] = random.pick([
      ['[', ']'],
      ['{"a":', '}'],
      ['[{"a":', '}]'],
      ['[0,', ']'],
    ]);
    const depth = random.magnitude(10, Math.floor(bytes / (open.length + close.length + 1)));
    const one = `${open.repeat(depth)}0${close.repeat(depth)}`;
    return { value: `[${list(bytes, () => one)}]`, name: `${depth} levels of ${open}` };
  },
  (random, bytes) => {
    const length = random.magnitude(1, 100_000);
    const child = random.pick(['0', '{}', '[]', '""', 'null', '{"a":{}}']);
    return {
      value: `{${list(bytes, (i) => `${key(random, length, i)}:${child}`)}}`,
      name: `fields of ${length} letters with ${child}`,
    };
  },
  (random, bytes) => {
    const length = random.magnitude(1_000, bytes / 2);
    const child = random.pick(['0', '{}', '[]', '"x"', 'true']);
    return {
      value: `{${key(random, length, 0)}:[${list(bytes - length, () => child)}]}`,
      name: `a field of ${length} letters over ${child}`,
    };
  },
  (random, bytes) => {
    const levels = random.integer(2, 12);
    const name = 'k'.repeat(Math.floor(bytes / 2 / levels));
    const inner = `[${list(bytes / 2, () => '{}')}]`;
    return {
      value: `${`{"${name}":`.repeat(levels)}${inner}${'}'.repeat(levels)}`,
      name: `${levels} levels of long fields over objects`,
    };
  },
  (random, bytes) => {
    const length = random.magnitude(10, bytes - 100);
    const alphabet = random.pick(alphabets);
    const piece = quoted(text(random, length, alphabet));
    return { value: `[${list(bytes, () => piece)}]`, name: `texts of ${length} of ${quoted(alphabet)}` };
  },
  (random, bytes) => {
    // As long as a prompt may be, and no more of them than a request may have. All are searched for the name.
    const length = random.integer(10_000, 32_000);
    const alphabet = random.pick(alphabets);
    const words = text(random, length - 20, alphabet);
    const one = (index: number): string => `{"prompt":${quoted(`robot ${words}${index}`)}}`;
    return { value: `[${list(bytes - 20, one)},{"prompt":"x"}]`, name: `prompts of ${length} of ${quoted(alphabet)}` };
  },
  (random, bytes) => {
    const length = random.magnitude(10, bytes - 100);
    const digits = '1234567890'.repeat(Math.ceil(length / 10)).slice(0, length);
    const number = random.pick([digits, `0.${digits}`, `-${digits}e-${length}`, `${digits}e999`, `1e${digits}`]);
    return { value: `[${list(bytes, () => number)}]`, name: `numbers of ${length} digits` };
  },
  (random, bytes) => {
    const names = random.pick([
      ['prompt'],
      ['prompt', 'name', 'styles'],
      ['__proto__'],
      ['toString', 'constructor'],
      [''],
    ]);
    return {
      value: `{${list(bytes, (i) => `${quoted(names[i % names.length])}:${random.pick(['0', '"x"', '{}', '[]'])}`)}}`,
      name: `the fields ${quoted(names.join())} over and over`,
    };
  },
  (random, bytes) => {
    const escape = random.pick(['\\ud83d\\ude00', '\\ud800', '\\u0000', '\\u0061', '\\\\', '\\"', '\\/', '~1', '~0/']);
    const inKeys = random.next() < 0.5;
    const length = random.magnitude(10, bytes / 4 / escape.length);
    const piece = `"${escape.repeat(length)}"`;
    const value = inKeys ? `{${list(bytes, (i) => `${piece.slice(0, -1)}${i}":0`)}}` : `[${list(bytes, () => piece)}]`;
    return { value, name: `${length} of ${escape} in ${inKeys ? 'fields' : 'texts'}` };
  },
  (random, bytes) => {
    const fields = random.integer(1, 1_000);
    const one = `{"prompt":"x","id":"${'A'.repeat(24)}","name":"x",${list(fields * 10, (i) => `"u${i}":${i}`)}}`;
    const most = random.next() < 0.5 ? 100 : Infinity;
    let count = 0;
    const value = `[${list(bytes, () => (count++ < most ? one : ' '.repeat(bytes)))}]`;
    return { value, name: `elements with ${fields} unknown bytes, at most ${most}` };
  },
  (random, bytes) => {
    const pieces = random.pick([' ', '\n', '\t\r\n ', '[] ,']).repeat(bytes / 4);
    return { value: `[${pieces}0]`, name: `${quoted(pieces.slice(0, 4))} and little else` };
  },
];

/** Where to put a value; `null` is the whole body. */
const places = [null, 'prompt', 'metadata', 'styles', 'name', 'seed', 'images_url', 'unknown', 'aspect_ratio'];
const contentTypes = [
  'application/json; charset=utf-8',
  'application/problem+json',
  'text/plain',
  'application/json; charset=utf-16',
  `application/json; ${'x=y; '.repeat(1_000)}`,
  'multipart/form-data; boundary=x',
  'application/x-www-form-urlencoded',
];

/** A random request to one of `paths`. The same random numbers make the same request. */
export function makeShape(random: Random, index: number, paths: readonly string[]): Shape {
  const path = random.pick(paths);
  const place = random.pick(places);
  const frame = '{"prompt":"a red circle","steps":1,"model":"shapes",}';
  const { value, name } = kinds[index % kinds.length](random, maxBytes - frame.length - 40);
  const object = place === null ? value : `${frame.slice(0, -1)}"${place}":${value}}`;
  const isArray = path.endsWith('/prompts') || path.endsWith('/styles');
  const whole = isArray && place !== null ? `[${object}]` : object;
  const isCut = random.next() < 0.1;
  const body = Buffer.from(isCut ? whole.slice(0, -random.integer(1, 100)) : whole);
  const contentType = random.next() < 0.15 ? random.pick(contentTypes) : undefined;
  const chunked = random.next() < 0.25;
  const details = [
    name,
    place && `in ${place}`,
    `to ${path.replace(/\/[\w-]{24}/g, '/:id')}`,
    contentType && `as ${contentType.slice(0, 40)}`,
    chunked && 'chunked',
    isCut && 'cut off',
  ];
  return {
    name: details.filter(Boolean).join(', '),
    path,
    body,
    headers: contentType ? { 'content-type': contentType } : {},
    chunked,
  };
}
