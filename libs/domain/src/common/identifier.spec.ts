import { isIdentifier, newIdentifier } from './identifier';

describe(newIdentifier, () => {
  const ids = Array.from({ length: 5000 }, newIdentifier);

  it('returns 24 URL-safe characters that begin with a letter or a digit, never the same twice', () => {
    for (const id of ids) expect(id).toMatch(/^[A-Za-z0-9][A-Za-z0-9_-]{23}$/);
    expect(ids.every(isIdentifier)).toBe(true);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('draws all of its 144 bits: each is set in about half of many', () => {
    const bytes = ids.map((id) => Buffer.from(id, 'base64url'));
    const shares = Array.from(
      { length: 144 },
      (_, bit) => bytes.filter((id) => (id[bit >> 3] >> (bit & 7)) & 1).length / ids.length,
    );
    // Seven standard deviations of 5000 fair draws.
    for (const share of shares) expect(Math.abs(share - 0.5)).toBeLessThan(0.05);
  });
});
