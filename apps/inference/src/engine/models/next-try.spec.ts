import { OutOfMemoryError } from '@app/diffusion';
import { nextTry } from './next-try';

describe(nextTry.name, () => {
  const outOfMemory = new OutOfMemoryError('no memory');
  const after = (error: Error, { idle = 0, others = true } = {}) =>
    nextTry(error, { registry: { releaseIdle: async () => idle > 0 }, hasOthers: () => others });

  it('is another one as long as its rows can be halved, and releases nothing before', async () => {
    const releaseIdle = () => Promise.reject(new Error('it releases idle models'));
    const halved = nextTry(outOfMemory, { halveRows: () => true, registry: { releaseIdle }, hasOthers: () => true });
    expect(await halved).toBe('again');
  });

  it('is another one as long as idle models make room, then one alone, then none', async () => {
    expect(await after(outOfMemory, { idle: 1 })).toBe('again');
    expect(await after(outOfMemory)).toBe('alone');
    expect(await after(outOfMemory, { others: false })).toBe('end');
  });

  it('is none after another failure, and releases nothing for it', async () => {
    const releaseIdle = () => Promise.reject(new Error('it releases idle models'));
    const registry = { releaseIdle };
    expect(await nextTry(new Error('a graph fails'), { registry, hasOthers: () => true })).toBe('end');
  });
});
