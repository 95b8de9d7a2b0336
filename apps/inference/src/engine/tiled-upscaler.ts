import {
  asOutOfMemory,
  type GraphSession,
  isGraphFault,
  ModelFolderError,
  ModelSession,
  OutOfMemoryError,
} from '@app/diffusion';
import { type InferenceSession, Tensor } from 'onnxruntime-node';
import { UpscalerError } from './engine-errors';
import type { RgbPicture } from './engine-protocol';

const notOnePicture = 'it does not take one picture and give one.';

/** Edge of a tile where the graph leaves it free: the runtime's memory for ESRGAN stays at a few hundred megabytes. */
const freeTileEdge = 128;

/**
 * An ESRGAN-style upscaler: maps RGB planes in 0..1, [1, 3, height, width], to a whole multiple of the size. Pictures
 * are processed in overlapping tiles whose seams are blended.
 */
export class TiledUpscaler {
  private constructor(
    private readonly session: GraphSession,
    /** Pixels of what a call takes. */
    readonly tile: { width: number; height: number },
    readonly scale: number,
  ) {}

  /**
   * @throws UpscalerError with one sentence saying why the file is not such a model
   * @throws OutOfMemoryError if it needs more than there is
   */
  static async load(file: string, options: InferenceSession.SessionOptions): Promise<TiledUpscaler> {
    const session = await ModelSession.openFile(file, options).catch((error: unknown) => {
      throw error instanceof ModelFolderError
        ? new UpscalerError(notOnePicture)
        : problemOf(error, 'ONNX Runtime refuses it.');
    });
    try {
      const tile = tileOf(session);
      const trial = await run(session, new Float32Array(3 * tile.width * tile.height), tile);
      const scale = trial.width / tile.width;
      if (!Number.isInteger(scale) || scale < 2 || trial.height !== scale * tile.height)
        throw new UpscalerError('it does not enlarge by a whole number of at least 2.');
      return new TiledUpscaler(session, tile, scale);
    } catch (error) {
      await session.release();
      throw problemOf(error, 'it fails on a picture of three planes.');
    }
  }

  /**
   * Enlarges as often as the long edge stays within `maxLongEdge`, tile by tile; the same picture if that is never.
   * Besides the two pictures, one row of tiles is held.
   * @throws UpscalerError if the model gives something else than three planes of float32
   * @throws OutOfMemoryError if a tile needs more than there is
   */
  async *enlarge(picture: RgbPicture, maxLongEdge: number): AsyncGenerator<void, RgbPicture> {
    let enlarged = picture;
    while (Math.max(enlarged.width, enlarged.height) * this.scale <= maxLongEdge)
      enlarged = yield* this.enlargeOnce(enlarged);
    return enlarged;
  }

  private async *enlargeOnce(picture: RgbPicture): AsyncGenerator<void, RgbPicture> {
    const { scale, tile } = this;
    const columns = planTiles(picture.width, tile.width, scale);
    const rows = planTiles(picture.height, tile.height, scale);
    const [width, height] = [picture.width * scale, picture.height * scale];
    const data = new Uint8Array(width * height * 3);
    // Sums of weighted tiles of the current row; the part that overlaps the next row is carried over.
    const band = new Float32Array(Math.min(tile.height * scale, height) * width * 3);
    for (const [index, row] of rows.entries()) {
      const begin = row.start * scale;
      const end = index + 1 < rows.length ? rows[index + 1].start * scale : height;
      for (const column of columns) {
        const planes = cutTile(picture, column.start, row.start, tile);
        const { data: enlarged } = await run(this.session, planes, tile);
        addTile(band, width, enlarged, tile.width * scale, tile.height * scale, column, row);
        if (column === columns.at(-1)) takeFinished(band, data.subarray(begin * width * 3, end * width * 3));
        yield;
      }
    }
    return { width, height, data };
  }

  release(): Promise<void> {
    return this.session.release();
  }
}

/** Where memory was short, or the device or the system failed, the error says nothing of a file that may be sound. */
function problemOf(error: unknown, message: string): Error {
  const cause = asOutOfMemory(error) as Error;
  const isSound = cause instanceof OutOfMemoryError || cause instanceof UpscalerError || !isGraphFault(cause);
  return isSound ? cause : new UpscalerError(message, { cause });
}

function tileOf({ inputs, outputs }: GraphSession): { width: number; height: number } {
  const [input, ...others] = inputs;
  if (!input || others.length > 0 || outputs.length === 0) throw new UpscalerError(notOnePicture);
  if (input.type !== 'float32') throw new UpscalerError(`it takes ${input.type} where float32 is needed.`);
  const [batch, planes, height, width] = input.shape;
  if (
    input.shape.length !== 4 ||
    (typeof batch === 'number' && batch > 1) ||
    (typeof planes === 'number' && planes > 0 && planes !== 3)
  )
    throw new UpscalerError(`it takes the shape [${input.shape.join(', ')}] where [1, 3, height, width] is needed.`);
  const edge = (dim: number | string): number => (typeof dim === 'number' && dim > 0 ? dim : freeTileEdge);
  return { width: edge(width), height: edge(height) };
}

async function run(session: GraphSession, planes: Float32Array, tile: { width: number; height: number }) {
  const [{ name: input }] = session.inputs;
  const [{ name: output }] = session.outputs;
  const feeds = { [input]: new Tensor('float32', planes, [1, 3, tile.height, tile.width]) };
  const { data, dims } = (await session.run(feeds))[output];
  if (dims.length !== 4 || dims[1] !== 3 || !(data instanceof Float32Array))
    throw new UpscalerError('it does not give three planes of float32.');
  return { data, height: Number(dims[2]), width: Number(dims[3]) };
}

/** Planes of a tile, in 0..1. A picture smaller than the tile is extended by its last row and column. */
function cutTile(
  picture: RgbPicture,
  left: number,
  top: number,
  tile: { width: number; height: number },
): Float32Array {
  const size = tile.width * tile.height;
  const planes = new Float32Array(3 * size);
  for (let y = 0; y < tile.height; y++) {
    const row = Math.min(top + y, picture.height - 1) * picture.width;
    for (let x = 0; x < tile.width; x++) {
      const from = (row + Math.min(left + x, picture.width - 1)) * 3;
      const to = y * tile.width + x;
      for (let colour = 0; colour < 3; colour++) planes[colour * size + to] = picture.data[from + colour] / 255;
    }
  }
  return planes;
}

/** Moves the first rows of the band, which no other tile adds to, into the picture. */
function takeFinished(band: Float32Array, target: Uint8Array): void {
  const { length } = target;
  for (let i = 0; i < length; i++) target[i] = Math.min(255, Math.max(0, Math.round(band[i] * 255)));
  band.copyWithin(0, length);
  band.fill(0, band.length - length);
}

/** Adds an enlarged tile to the band, each pixel multiplied by the weights of its column and its row. */
function addTile(
  band: Float32Array,
  bandWidth: number,
  planes: Float32Array,
  tileWidth: number,
  tileHeight: number,
  column: TileSpan,
  row: TileSpan,
): void {
  const size = tileWidth * tileHeight;
  for (let y = 0; y < row.weights.length; y++) {
    if (row.weights[y] === 0) continue;
    for (let x = 0; x < column.weights.length; x++) {
      const weight = row.weights[y] * column.weights[x];
      if (weight === 0) continue;
      const to = (y * bandWidth + column.enlargedStart + x) * 3;
      const from = y * tileWidth + x;
      for (let colour = 0; colour < 3; colour++) band[to + colour] += planes[colour * size + from] * weight;
    }
  }
}

/** Overlap of neighbouring tiles in pixels, if a tile is large enough. */
const widestOverlap = 32;

/** Position of a tile along one axis, and the weight of each of its enlarged pixels. */
interface TileSpan {
  /** First pixel in the source. */
  start: number;
  /** First pixel in the enlarged picture. */
  enlargedStart: number;
  /** One weight per enlarged pixel inside the picture; the weights of a pixel in all tiles add up to 1. */
  weights: Float32Array;
}

/**
 * Covers an axis with tiles of one size; the last is moved back to end where the picture does. The weight moves from
 * one tile to the next over the middle half of their overlap; a tile's border, which lacks context, has weight 0.
 */
export function planTiles(length: number, tile: number, scale: number): TileSpan[] {
  const overlap = Math.min(widestOverlap, Math.floor(tile / 2));
  const starts = [0];
  while (starts.at(-1)! + tile < length) starts.push(Math.min(starts.at(-1)! + tile - overlap, length - tile));
  /** How far a position has moved from the previous tile to tile i, 0 to 1. */
  const passed = (at: number, i: number): number => {
    if (i === 0) return 1;
    if (i === starts.length) return 0;
    const middle = (starts[i] + starts[i - 1] + tile) / 2;
    return Math.min(1, Math.max(0, (at - middle) / (overlap / 2) + 0.5));
  };
  return starts.map((start, i) => {
    const weights = new Float32Array(Math.min(tile, length) * scale);
    for (let x = 0; x < weights.length; x++) {
      const at = start + (x + 0.5) / scale;
      weights[x] = passed(at, i) - passed(at, i + 1);
    }
    return { start, enlargedStart: start * scale, weights };
  });
}
