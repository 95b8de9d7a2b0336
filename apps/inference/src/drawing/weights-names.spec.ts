import { keyOf, servedByOf } from './weights-names';

const hash = 'b'.repeat(64);
const model = { name: 'sd1.5', hash: 'a'.repeat(64) };
const lora = (scale: number) => ({ ...model, weights: { kind: 'lora', hash, scale, token: 'zwx' } as const });
const embedding = (scale: number, token = 'zwx') => ({
  ...model,
  weights: { kind: 'textual_inversion', hash, scale, token } as const,
});

describe.each([
  [keyOf.name, keyOf],
  [servedByOf.name, servedByOf],
])('%s', (_, nameOf) => {
  it('tells a LoRA apart from itself at another scale, and from its base', () => {
    const names = [model, lora(1), lora(0.5), lora(0.25)].map(nameOf);
    expect(new Set(names).size).toBe(4);
    expect(nameOf(lora(0.5))).toBe(names[2]);
  });

  it('does not regard the scale of a textual inversion, which has none', () => {
    expect(nameOf(embedding(0.5))).toBe(nameOf(embedding(1)));
  });
});

describe(servedByOf.name, () => {
  it('has the beginnings of the hashes, of weights at scale 1 that of their file', () => {
    expect(servedByOf(model)).toBe('sd1.5@aaaaaaaaaaaa');
    expect(servedByOf(lora(1))).toBe('sd1.5@aaaaaaaaaaaa+bbbbbbbbbbbb');
    expect(servedByOf(lora(0.5))).toMatch(/^sd1\.5@a{12}\+[0-9a-f]{12}$/);
  });
});

describe(keyOf.name, () => {
  it('tells the words of a textual inversion apart', () => {
    expect(keyOf(embedding(1, 'other'))).not.toBe(keyOf(embedding(1)));
  });
});
