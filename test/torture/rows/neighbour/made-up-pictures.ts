import { crc32, deflateSync } from 'node:zlib';
import type { HostilePicture } from './hostile-pictures';
import type { Random } from './shapes';

function chunk(type: string, data: Buffer): Buffer {
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(Buffer.concat([Buffer.from(type), data])));
  return Buffer.concat([length, Buffer.from(type), data, sum]);
}

/** Channels by the colour type of a PNG. */
const channels: Readonly<Record<number, number>> = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 };
/** Left, top, and the steps of the passes of an interlaced PNG. */
const passes = [
  [0, 0, 8, 8],
  [4, 0, 8, 8],
  [0, 4, 4, 8],
  [2, 0, 4, 4],
  [0, 2, 2, 4],
  [1, 0, 2, 2],
  [0, 1, 1, 2],
];

interface PngShape {
  width: number;
  height: number;
  depth?: number;
  colour?: number;
  interlaced?: boolean;
  extra?: Buffer[];
}

/** A whole PNG in which every byte of a pixel is 0. */
function png({ width, height, depth = 8, colour = 0, interlaced = false, extra = [] }: PngShape): Buffer {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([depth, colour, 0, 0, Number(interlaced)], 8);
  const bytes = (interlaced ? passes : [[0, 0, 1, 1]]).reduce((sum, [left, top, across, down]) => {
    const [columns, rows] = [Math.ceil((width - left) / across), Math.ceil((height - top) / down)];
    return columns > 0 && rows > 0 ? sum + rows * (1 + Math.ceil((columns * channels[colour] * depth) / 8)) : sum;
  }, 0);
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    chunk('IHDR', head),
    ...extra,
    chunk('IDAT', deflateSync(Buffer.alloc(bytes))),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

const brokenProfile = (bytes: number): Buffer =>
  chunk('iCCP', Buffer.concat([Buffer.from('x\0\0'), deflateSync(Buffer.alloc(bytes, 'icc'))]));
const turned = chunk('eXIf', Buffer.from('MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0', 'latin1'));
const page = Buffer.from('<!doctype html><script>alert(1)</script>'.repeat(500));

type Maker = (random: Random) => HostilePicture;

/** Whole numbers of megapixels that are made here in well under a second. */
const makers: Maker[] = [
  (random) => {
    const [short, long] = [random.integer(1, 4), random.magnitude(1_000_000, 12_000_000)];
    const [width, height] = random.next() < 0.8 ? [short, long] : [long, short];
    return { name: `strip of ${width} x ${height}`, file: png({ width, height }) };
  },
  (random) => {
    const edge = random.integer(8_000, 16_384);
    return { name: `bomb of ${edge} x ${edge}`, file: png({ width: edge, height: edge, depth: 1 }) };
  },
  (random) => {
    const edge = random.integer(500, 2_500);
    const extra = [brokenProfile(random.magnitude(10, 10_000_000)), ...(random.next() < 0.5 ? [turned] : [])];
    const file = png({ width: edge, height: edge, depth: 16, colour: 6, interlaced: true, extra });
    return { name: `interlaced, 16 bit, profile, ${edge} x ${edge}`, file };
  },
  (random) => {
    const [edge, entries] = [random.integer(500, 6_000), random.pick([0, 1, 255, 256, 257, 100_000])];
    const extra = [chunk('PLTE', Buffer.alloc(3 * entries, 1)), chunk('tRNS', Buffer.alloc(entries, 7))];
    return {
      name: `palette of ${entries}, ${edge} x ${edge}`,
      file: png({ width: edge, height: edge, colour: 3, extra }),
    };
  },
  (random) => {
    const whole = png({ width: 2_000, height: 2_000, colour: 2, interlaced: random.next() < 0.5 });
    const left = random.magnitude(9, whole.length);
    return { name: `truncated to ${left} bytes`, file: whole.subarray(0, left) };
  },
  (random) => {
    const whole = png({ width: 300, height: 200, colour: 2 });
    const other = random.pick([page, Buffer.from('PK\x03\x04'), Buffer.from('\xff\xd8\xff\xe0', 'latin1'), whole]);
    const isBehind = random.next() < 0.7;
    return {
      name: `two files in one, the picture ${isBehind ? 'first' : 'last'}`,
      file: Buffer.concat(isBehind ? [whole, other] : [other, whole]),
    };
  },
];

/** The same random numbers make the same picture. */
export const madeUpPicture = (random: Random, index: number): HostilePicture => makers[index % makers.length](random);

/** Whether it must be refused for its shape, as its name says it. */
export const isStrip = ({ name }: HostilePicture): boolean => /^(strip|bomb) /.test(name);
