import { type FileHandle, mkdir, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { encodeFloat16 } from '../tensor/half';
import type { OnnxModel } from './onnx-model';
import { type ExternalData, FLOAT, FLOAT16 } from './onnx-proto';

/** Weights start at multiples of a page, so that the runtime can map them into memory. */
const PAGE_BYTES = 4096;
/** Smaller constants stay in the graph, because the runtime reads shapes and the like while it loads. */
const MOVED_BYTES = 1024;

/** A file of external data, to which weights are appended. */
class ExternalDataWriter {
  private offset = 0;

  constructor(
    private readonly file: FileHandle,
    private readonly location: string,
  ) {}

  /** Appends values as float32 or float16, and returns their position. */
  async append(values: Float32Array, dataType: number): Promise<ExternalData> {
    const stored = dataType === FLOAT16 ? encodeFloat16(values) : values;
    const bytes = new Uint8Array(stored.buffer, stored.byteOffset, stored.byteLength);
    const offset = Math.ceil(this.offset / PAGE_BYTES) * PAGE_BYTES;
    for (let done = 0; done < bytes.length;)
      done += (await this.file.write(bytes, done, bytes.length - done, offset + done)).bytesWritten;
    this.offset = offset + bytes.length;
    return { location: this.location, offset, length: bytes.length, dataType };
  }
}

/**
 * Writes `model.onnx` into a folder that already has the base's external files. Changed weights go to a new file beside
 * it; weights inside the base's own `model.onnx` are read from there, through a link with another name.
 * @param share places a file of the base under another name
 * @param change appends the changed weights, and returns their positions by initializer
 * @param stale names of values whose recorded shapes and types are no longer true
 */
export async function rewriteGraph(
  model: OnnxModel,
  folder: string,
  share: (from: string, to: string) => Promise<void>,
  stale: ReadonlySet<string>,
  change: (file: ExternalDataWriter) => Promise<Map<string, ExternalData>>,
): Promise<void> {
  await mkdir(folder, { recursive: true });
  const taken = new Set([...model.externalFiles(), ...(await readdir(folder))]);
  const free = (stem: string) => {
    let name = `${stem}.weights`;
    for (let i = 2; taken.has(name); i++) name = `${stem}-${i}.weights`;
    taken.add(name);
    return name;
  };
  const location = free('changed');
  const file = await open(join(folder, location), 'wx');
  let changes: Map<string, ExternalData>;
  try {
    changes = await change(new ExternalDataWriter(file, location));
    await file.sync();
  } finally {
    await file.close();
  }
  const inline = new Map<string, ExternalData>();
  const base = free('base');
  for (const { name, dataType, data } of model.initializers.values()) {
    if (changes.has(name) || data?.end === undefined || data.location !== undefined) continue;
    const length = data.end - data.begin;
    if (length < MOVED_BYTES || (dataType !== FLOAT && dataType !== FLOAT16)) continue;
    inline.set(name, { location: base, offset: data.begin, length });
  }
  if (inline.size > 0) await share(model.path, join(folder, base));
  await model.write(join(folder, 'model.onnx'), new Map([...inline, ...changes]), stale);
}
