/** The few items of CBOR that COSE needs. Source: RFC 8949, 3. */
export const cbor = {
  /** @param value an integer, also below 0 */
  integer: (value: number): Buffer => (value < 0 ? head(1, -1 - value) : head(0, value)),
  bytes: (value: Uint8Array): Buffer => Buffer.concat([head(2, value.length), value]),
  text: (value: string): Buffer => Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)]),
  array: (...items: Buffer[]): Buffer => Buffer.concat([head(4, items.length), ...items]),
  map: (...entries: [key: Buffer, value: Buffer][]): Buffer =>
    Buffer.concat([head(5, entries.length), ...entries.flat()]),
  tagged: (tag: number, item: Buffer): Buffer => Buffer.concat([head(6, tag), item]),
  null: Buffer.from([0xf6]),
};

function head(major: number, value: number): Buffer {
  const [first, size] = value < 24 ? [value, 0] : value < 2 ** 8 ? [24, 1] : value < 2 ** 16 ? [25, 2] : [26, 4];
  const bytes = Buffer.alloc(1 + size);
  bytes[0] = (major << 5) | first;
  if (size > 0) bytes.writeUIntBE(value, 1, size);
  return bytes;
}
