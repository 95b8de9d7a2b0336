/** Damaged copies, the same each time: changed, flipped, truncated, repeated and removed pieces. */
export function* mutations(bytes: Buffer, count: number): Generator<Buffer> {
  let state = 1;
  const random = (below: number) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  for (let i = 0; i < count; i++) {
    let damaged = Buffer.from(bytes);
    for (let edits = 1 + random(3); edits > 0 && damaged.length > 0; edits--) {
      const at = random(damaged.length);
      const kind = random(5);
      if (kind === 0) damaged[at] = random(256);
      else if (kind === 1) damaged[at] ^= 1 << random(8);
      else if (kind === 2) damaged = damaged.subarray(0, at);
      else if (kind === 3) damaged = Buffer.concat([damaged.subarray(0, at), damaged.subarray(random(at + 1))]);
      else damaged = Buffer.concat([damaged.subarray(0, at), damaged.subarray(at + random(damaged.length - at))]);
    }
    yield damaged;
  }
}
