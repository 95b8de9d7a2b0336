import { type InferenceSession, Tensor } from '../sessions/onnx-runtime';
import { ModelFolderError, OutOfMemoryError } from '../errors';
import { isGraphFault } from '../sessions/graph-fault';
import { asOutOfMemory, type GraphSession, ModelSession } from '../sessions/model-session';
import type { RgbImage } from '../tensor/planes';

/** A file that is no upscaler. The message is a clause that says why. */
export class UpscalerError extends Error {
  override readonly name = 'UpscalerError';
}

/** Pixels that neighbouring tiles have in common, if a tile is large enough. */
const widestOverlap = 32;

const notOnePicture = 'it does not take one picture and give one.';

/** Edge of a tile where the graph leaves it free: the runtime's memory for ESRGAN stays at a few hundred megabytes. */
const freeTileEdge = 128;

/**
 * An ESRGAN-style upscaler: maps RGB planes in 0..1, [1, 3, height, width], to a whole multiple of the size. Pictures
 * are enlarged in tiles that overlap, and each gives what is nearer to its middle, so that no border shows.
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
   * @throws UpscalerError if the model gives something else than three planes of float32
   * @throws OutOfMemoryError if a tile needs more than there is
   */
  async *enlarge(picture: RgbImage, maxLongEdge: number): AsyncGenerator<void, RgbImage> {
    const { tile, scale } = this;
    let enlarged = picture;
    while (Math.max(enlarged.width, enlarged.height) * scale <= maxLongEdge) {
      const [width, height] = [enlarged.width * scale, enlarged.height * scale];
      const into = { width, height, data: new Uint8Array(width * height * 3) };
      for (const row of planTiles(enlarged.height, tile.height))
        for (const column of planTiles(enlarged.width, tile.width)) {
          const { data } = await run(this.session, cutTile(enlarged, column.start, row.start, tile), tile);
          placeTile(into, data, tile, scale, column, row);
          yield;
        }
      enlarged = into;
    }
    return enlarged;
  }

  release(): Promise<void> {
    return this.session.release();
  }
}

/**
 * The error of a file that is no upscaler; the cause itself if memory, the device or the system failed, as the file may
 * be sound.
 */
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
function cutTile(picture: RgbImage, left: number, top: number, tile: { width: number; height: number }): Float32Array {
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

/** The part of a picture that a tile gives, along one axis. */
interface TileSpan {
  /** Its first pixel. */
  start: number;
  /** The pixels of the picture that it gives, the last one excluded. */
  from: number;
  to: number;
}

/** Covers an axis with tiles of one size, of which the last is moved back to end where the picture does. */
function planTiles(length: number, tile: number): TileSpan[] {
  const overlap = Math.min(widestOverlap, Math.floor(tile / 2));
  const starts = [0];
  while (starts.at(-1)! + tile < length) starts.push(Math.min(starts.at(-1)! + tile - overlap, length - tile));
  const middles = starts.slice(1).map((start, i) => Math.floor((start + starts[i] + tile) / 2));
  return starts.map((start, i) => ({ start, from: middles[i - 1] ?? 0, to: middles[i] ?? length }));
}

/** Writes what a tile gives into the enlarged picture. @param planes of the enlarged tile */
function placeTile(
  { data, width }: RgbImage,
  planes: Float32Array,
  tile: { width: number; height: number },
  scale: number,
  column: TileSpan,
  row: TileSpan,
): void {
  const [tileWidth, size] = [tile.width * scale, tile.width * tile.height * scale ** 2];
  // It rounds what is written to it.
  const pixels = new Uint8ClampedArray(data.buffer);
  for (let y = row.from * scale; y < row.to * scale; y++)
    for (let x = column.from * scale; x < column.to * scale; x++) {
      const from = (y - row.start * scale) * tileWidth + x - column.start * scale;
      for (let colour = 0; colour < 3; colour++)
        pixels[(y * width + x) * 3 + colour] = planes[colour * size + from] * 255;
    }
}
