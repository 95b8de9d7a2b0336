import { quote } from '../safetensors/quote';
import type { ByteSource } from '../tensor/byte-source';
import { type BlockTypeName, blockTypes, isBlockType } from './blocks';

/** Far more than any model has. */
const mostTensors = 20_000;
const mostKeys = 10_000;
/** Of all lists: a vocabulary has a few hundred thousand entries. */
const mostItems = 4_000_000;
const longestName = 1000;

export type GgufType = 'F32' | 'F16' | 'BF16' | BlockTypeName;

/** One tensor as the header describes it; `begin` is a byte position in the file. */
export interface GgufInfo {
  type: GgufType;
  /** The outermost first, as PyTorch has it. */
  shape: number[];
  begin: number;
}

/** ggml's numbers of the types of tensors that are read. */
const typesByNumber: Readonly<Record<number, GgufType>> = {
  ...{ 0: 'F32', 1: 'F16', 2: 'Q4_0', 3: 'Q4_1', 6: 'Q5_0', 7: 'Q5_1', 8: 'Q8_0' },
  ...{ 12: 'Q4_K', 13: 'Q5_K', 14: 'Q6_K', 30: 'BF16' },
};

const readTypes = Object.values(typesByNumber).join(', ');

/** Bytes of metadata values by the number of their type; 8 is a string and 9 an array. */
const valueBytes: Readonly<Record<number, number>> = {
  ...{ 0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8 },
};
const [ofString, ofArray, ofUint32, ofFloat32] = [8, 9, 4, 6];

/** Whether a file begins as GGUF does. */
export const isGguf = (source: ByteSource): boolean => source.size >= 4 && source.text(0, 4) === 'GGUF';

/** What the header of a GGUF file says. */
export interface GgufHeader {
  /** Single values of the metadata, numbers and texts. */
  metadata: ReadonlyMap<string, number | string>;
  tensors: ReadonlyMap<string, GgufInfo>;
}

/** The file is no GGUF that can be read; the message is one plain sentence. */
export class GgufError extends Error {
  override name = 'GgufError';

  /** @param isOfForm whether it is whole, and has numbers in a form that is not read */
  constructor(
    message: string,
    readonly isOfForm = false,
  ) {
    super(message);
  }
}

/**
 * Reads the header of a GGUF file and checks that the tensors lie in the file. No tensor is read; what the header may
 * claim is bounded. Source: `docs/gguf.md` of ggml, versions 2 and 3.
 * @throws GgufError
 */
export const readGgufHeader = (source: ByteSource): GgufHeader => new HeaderReader(source).read();

class HeaderReader {
  private at = 4;
  private readonly metadata = new Map<string, number | string>();
  private items = 0;
  private tensorBytes = 0;

  constructor(private readonly source: ByteSource) {}

  read(): GgufHeader {
    if (!isGguf(this.source)) throw new GgufError('It does not begin as GGUF does.');
    const version = this.uint32();
    if (version !== 2 && version !== 3) throw new GgufError(`It is GGUF of version ${version}; 2 and 3 are read.`);
    const tensors = this.count(mostTensors, 'tensors');
    const keys = this.count(mostKeys, 'metadata values');
    for (let i = 0; i < keys; i++) this.pair();
    const infos = Array.from({ length: tensors }, () => this.tensor());
    const alignment = this.metadata.get('general.alignment') ?? 32;
    if (typeof alignment !== 'number' || !Number.isInteger(Math.log2(alignment)) || alignment > 65_536)
      throw new GgufError(`Its alignment is ${quote(alignment)}.`);
    const begin = Math.ceil(this.at / alignment) * alignment;
    const found = new Map(infos.map(([name, info]) => [name, this.placed(name, info, begin)]));
    if (found.size < tensors) throw new GgufError('Two of its tensors have one name.');
    return { metadata: this.metadata, tensors: found };
  }

  private pair(): void {
    const key = this.string();
    const type = this.uint32();
    if (type === ofString && key === 'general.architecture') this.metadata.set(key, this.string());
    else if (type === ofUint32) this.metadata.set(key, this.uint32());
    else if (type === ofFloat32) this.metadata.set(key, this.float32());
    else this.skipValue(type);
  }

  private skipValue(type: number): void {
    if (type === ofString) return void this.skip(this.uint64());
    if (type !== ofArray) return this.skip(this.bytesOf(type));
    const item = this.uint32();
    const items = this.count(mostItems, 'values in a list');
    if ((this.items += items) > mostItems) throw new GgufError(`Its lists have more than ${mostItems} values.`);
    if (item === ofArray) throw new GgufError('Its metadata has a list of lists.');
    if (item !== ofString) return this.skip(items * this.bytesOf(item));
    for (let i = 0; i < items; i++) this.skip(this.uint64());
  }

  private tensor(): [string, GgufInfo] {
    const name = this.string();
    const dimensions = this.uint32();
    if (dimensions > 5) throw new GgufError(`The tensor ${quote(name)} has ${dimensions} dimensions.`);
    // The innermost stands first.
    const shape = Array.from({ length: dimensions }, () => this.uint64()).reverse();
    const number = this.uint32();
    const type = typesByNumber[number];
    if (!type)
      throw new GgufError(`The tensor ${quote(name)} is of ggml's type ${number}; ${readTypes} are read.`, true);
    const width = isBlockType(type) ? blockTypes[type].values : 1;
    if ((shape.at(-1) ?? 1) % width !== 0) throw new GgufError(`The tensor ${quote(name)} ends inside a block.`);
    return [name, { type, shape, begin: this.uint64() }];
  }

  private placed(name: string, { type, shape, begin: offset }: GgufInfo, dataBegin: number): GgufInfo {
    const begin = dataBegin + offset;
    const width = isBlockType(type) ? blockTypes[type].bytes / blockTypes[type].values : type === 'F32' ? 4 : 2;
    const bytes = shape.reduce((product, length) => product * length, width);
    if (begin + bytes > this.source.size)
      throw new GgufError(`The tensor ${quote(name)} ends behind the end of the file.`);
    if ((this.tensorBytes += bytes) > this.source.size) throw new GgufError('Its tensors lie over each other.');
    return { type, shape, begin };
  }

  private count(most: number, of: string): number {
    const count = this.uint64();
    if (count > most) throw new GgufError(`The header claims ${count} ${of}; at most ${most} are accepted.`);
    return count;
  }

  private bytesOf(type: number): number {
    const bytes = valueBytes[type];
    if (bytes === undefined) throw new GgufError(`Its metadata has a value of the unknown type ${type}.`);
    return bytes;
  }

  private string(): string {
    const length = this.uint64();
    if (length > longestName) throw new GgufError(`The header has a name of ${length} bytes.`);
    const begin = this.at;
    this.skip(length);
    return this.source.text(begin, this.at);
  }

  private uint32(): number {
    const begin = this.at;
    this.skip(4);
    return [3, 2, 1, 0].reduce((value, i) => value * 256 + this.source.byte(begin + i), 0);
  }

  private float32(): number {
    return new Float32Array(Uint32Array.of(this.uint32()).buffer)[0];
  }

  private uint64(): number {
    const [low, high] = [this.uint32(), this.uint32()];
    return high * 2 ** 32 + low;
  }

  private skip(bytes: number): void {
    this.at += bytes;
    if (this.at > this.source.size) throw new GgufError('It ends inside its header.');
  }
}
