import { servedByOf } from './weights-names';

const hash = 'b'.repeat(64);
const model = { name: 'sd1.5', hash: 'a'.repeat(64) };
const lora = (scale: number) => ({ kind: 'lora', hash, scale }) as const;
const embedding = (scale: number) => ({ kind: 'textual_inversion', hash, scale }) as const;

describe(servedByOf, () => {
  it('has the beginnings of the hashes, of weights at scale 1 that of their file', () => {
    expect(servedByOf(model)).toBe('sd1.5@aaaaaaaaaaaa');
    expect(servedByOf(model, [lora(1)])).toBe('sd1.5@aaaaaaaaaaaa+bbbbbbbbbbbb');
    expect(servedByOf(model, [lora(0.5)])).toMatch(/^sd1\.5@a{12}\+[0-9a-f]{12}$/);
  });

  it('tells a LoRA apart from itself at another scale, and not a textual inversion, which has none', () => {
    expect(new Set([1, 0.5, 0.25].map((scale) => servedByOf(model, [lora(scale)]))).size).toBe(3);
    expect(servedByOf(model, [embedding(0.5)])).toBe(servedByOf(model, [embedding(1)]));
  });
});
