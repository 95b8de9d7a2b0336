import { createHash } from 'node:crypto';
import { contentHash, modelKey, shortHash } from './content-hash';

const digest = (text: string): string => createHash('sha256').update(text).digest('hex');

describe(contentHash.name, () => {
  const files = new Map([
    ['unet/model.onnx', digest('a')],
    ['model_index.json', digest('b')],
  ]);

  it('is sha256 over the sorted paths with the hashes of the files', () => {
    const wanted = digest(`model_index.json\0${digest('b')}\nunet/model.onnx\0${digest('a')}\n`);
    expect(contentHash(files)).toBe(wanted);
    expect(shortHash(wanted)).toBe(wanted.slice(0, 12));
  });

  it('depends on every path and content but not on the order', () => {
    expect(contentHash(new Map([...files].reverse()))).toBe(contentHash(files));
    expect(contentHash(new Map([...files, ['x', digest('')]]))).not.toBe(contentHash(files));
    expect(contentHash(new Map([...files, ['model_index.json', digest('c')]]))).not.toBe(contentHash(files));
  });
});

describe(modelKey, () => {
  const model = { name: 'sd1.5', hash: 'a'.repeat(64) };

  it('tells apart what is read from the same files in another way, and nothing else', () => {
    const keys = [{}, { clip_skip: 2 }, { clip_skip: 3 }, { prediction_type: 'v_prediction' as const }, { steps: 4 }];
    expect(new Set(keys.map((defaults) => modelKey({ ...model, defaults }))).size).toBe(4);
    expect(modelKey(model)).toBe(`sd1.5@${model.hash}`);
  });
});
