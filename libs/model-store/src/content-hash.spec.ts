import { createHash } from 'node:crypto';
import { contentHash, shortHash } from './content-hash';

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
