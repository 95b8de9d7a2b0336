/** Red, green and blue, 0..255. */
export type Rgb = readonly [number, number, number];

type Format = keyof typeof sizeOf;
type Finish = 'flat' | 'outlined' | 'glossy';
export type GroundKind = 'plain' | 'gradient' | 'striped' | 'dotted';
type Relation = 'and' | 'above' | 'below' | 'left of' | 'right of' | 'inside';
export type Shape = (typeof shapeNames)[number];

/** Position and size of a shape, in short sides of the picture from its centre; y points down. */
export interface Place {
  x: number;
  y: number;
  r: number;
}

export interface Item extends Place {
  shape: Shape;
  color: string;
  finish: Finish;
}

/** The content of a caption, and one position for everything it names. */
export interface Scene {
  caption: string;
  format: Format;
  ground: string;
  kind: GroundKind;
  mode: 'one' | 'two' | 'many';
  relation?: Relation;
  /** In the order of the caption. */
  items: Item[];
}

/** Pixels as RGB bytes, row by row. */
export interface Picture {
  data: Uint8Array;
  width: number;
  height: number;
}

/** The colours that the bundled model was trained on. */
export const colors: Readonly<Record<string, Rgb>> = {
  red: [220, 38, 38],
  orange: [249, 115, 22],
  yellow: [250, 204, 21],
  green: [34, 160, 70],
  blue: [37, 99, 235],
  purple: [126, 34, 206],
  pink: [244, 114, 182],
  brown: [120, 72, 40],
  black: [17, 17, 20],
  white: [250, 250, 250],
  gray: [128, 132, 140],
  cyan: [34, 200, 220],
};
const colorNames = Object.keys(colors);
const shapeNames = [
  'circle',
  'square',
  'triangle',
  'star',
  'heart',
  'diamond',
  'hexagon',
  'ring',
  'cross',
  'moon',
] as const;
const prefixes = ['', '', '', 'a picture of ', 'a drawing of ', 'an icon of ', 'a photo of '];
const finishes = ['flat', 'flat', 'flat', 'outlined', 'glossy'] as const;
const grounds = ['plain', 'plain', 'plain', 'plain', 'gradient', 'striped', 'dotted'] as const;
/** Radius of the object, in short sides, of a picture with one object. */
const sizes = { small: 0.16, '': 0.27, big: 0.38 };
const numbers = ['two', 'three', 'four'] as const;
const relations = ['and', 'above', 'below', 'left of', 'right of', 'inside'] as const;
/** Shapes that may contain another object. */
const surroundings = ['circle', 'square', 'hexagon', 'diamond', 'heart'] as const;
/** Width and height of a format, in pixels. */
export const sizeOf = { square: [512, 512], portrait: [512, 768], landscape: [768, 512] } as const;

/** Random numbers in [0, 1) from a seed (mulberry32, T. Ettinger). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A random scene of the kind that the bundled model was trained on. */
export function sampleScene(random: () => number): Scene {
  const dice = new Dice(random);
  const format = dice.weighted({ square: 0.64, portrait: 0.18, landscape: 0.18 });
  const [width, height] = sizeOf[format];
  const half = { x: 0.5 * Math.max(1, width / height), y: 0.5 * Math.max(1, height / width) };
  const ground = random() < 0.75 ? dice.pick(colorNames) : 'white';
  const kind = dice.pick(grounds);
  const mode = dice.weighted({ one: 0.6, two: 0.28, many: 0.12 });
  const { phrase, ...objects } = { one: sampleOne, two: sampleTwo, many: sampleMany }[mode](dice, ground, half);
  const isNamed = random() < 0.85 || ground !== 'white' || kind !== 'plain';
  const ending = isNamed ? ` on ${article(`${kind === 'plain' ? '' : `${kind} `}${ground} background`)}` : '';
  return { caption: `${dice.pick(prefixes)}${phrase}${ending}`, format, ground, kind, mode, ...objects };
}

type Objects = Pick<Scene, 'items' | 'relation'> & { phrase: string };
type Half = Pick<Place, 'x' | 'y'>;

function sampleOne(dice: Dice, ground: string): Objects {
  const size = dice.weighted({ small: 0.2, '': 0.55, big: 0.25 });
  const item = { ...dice.look(ground), x: 0, y: 0, r: sizes[size] };
  return { items: [item], phrase: article(noun(item, size)) };
}

function sampleTwo(dice: Dice, ground: string, half: Half): Objects {
  const relation = dice.pick(relations);
  const [first, second] = relation === 'inside' ? nested(dice, ground) : apart(dice, ground, half, relation);
  return {
    items: [first, second],
    relation,
    phrase: `${article(noun(first))} ${relation} ${article(noun(second))}`,
  };
}

function nested(dice: Dice, ground: string): [Item, Item] {
  const outer: Item = { ...dice.look(ground), shape: dice.pick(surroundings), finish: 'flat', x: 0, y: 0, r: 0.355 };
  return [{ ...dice.look(ground, outer.color), x: 0, y: 0, r: 0.125 }, outer];
}

function apart(dice: Dice, ground: string, half: Half, relation: Relation): [Item, Item] {
  const first = dice.look(ground);
  let second = dice.look(ground);
  while (second.color === first.color && second.shape === first.shape) second = dice.look(ground);
  const [dx, dy] = { above: [0, -1], below: [0, 1], 'right of': [1, 0] }[relation as string] ?? [-1, 0];
  const [x, y, r] = [dx * 0.225 * (half.x + 0.5), dy * 0.225 * (half.y + 0.5), 0.17];
  return [
    { ...first, x, y, r },
    { ...second, x: -x, y: -y, r },
  ];
}

function sampleMany(dice: Dice, ground: string, half: Half): Objects {
  const look = dice.look(ground);
  const number = dice.pick(numbers);
  const r = 0.135;
  const spots: Half[] = [];
  while (spots.length < numbers.indexOf(number) + 2) {
    const spot = { x: dice.between(0.17 - half.x, half.x - 0.17), y: dice.between(0.17 - half.y, half.y - 0.17) };
    if (spots.every(({ x, y }) => Math.hypot(spot.x - x, spot.y - y) > 2.3 * r)) spots.push(spot);
    // The other objects may leave no room for the last one.
    else if (dice.random() < 0.01) spots.length = 0;
  }
  const plural = look.shape === 'cross' ? 'crosses' : `${look.shape}s`;
  const words = [number, look.finish === 'flat' ? '' : look.finish, look.color, plural];
  return { items: spots.map((spot) => ({ ...look, ...spot, r })), phrase: words.filter(Boolean).join(' ') };
}

const article = (phrase: string): string => (/^[aeiou]/.test(phrase) ? `an ${phrase}` : `a ${phrase}`);

function noun({ finish, color, shape }: Item, size = ''): string {
  return [size, finish === 'flat' ? '' : finish, color, shape].filter(Boolean).join(' ');
}

class Dice {
  constructor(readonly random: () => number) {}

  pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.random() * list.length)];
  }

  between(low: number, high: number): number {
    return low + this.random() * (high - low);
  }

  weighted<K extends string>(weights: Readonly<Record<K, number>>): K {
    const names = Object.keys(weights) as K[];
    let left = this.random() * names.reduce((sum, name) => sum + weights[name], 0);
    return names.find((name) => (left -= weights[name]) < 0) ?? names[0];
  }

  /** Shape, colour and finish of an object that is distinguishable from its surroundings. */
  look(...avoidedColors: string[]): Omit<Item, keyof Place> {
    const color = this.pick(colorNames.filter((name) => !avoidedColors.includes(name)));
    return { shape: this.pick(shapeNames), color, finish: this.pick(finishes) };
  }
}
