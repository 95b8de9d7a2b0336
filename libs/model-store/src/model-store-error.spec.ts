import { explainDiskErrors, formatBytes } from './model-store-error';

describe(formatBytes.name, () => {
  it.each([
    [0, '0 bytes'],
    [999, '999 bytes'],
    [1000, '1.00 kB'],
    [9994, '9.99 kB'],
    [9996, '10.0 kB'],
    [99_949, '99.9 kB'],
    [99_951, '100 kB'],
    [999_600, '1.00 MB'],
    [4_130_000_000, '4.13 GB'],
    [1e21, '1000 EB'],
  ])('writes %d as %s', (bytes, text) => expect(formatBytes(bytes)).toBe(text));
});

describe(explainDiskErrors.name, () => {
  it.each([
    ['ENOSPC', 'NoSpace'],
    ['EDQUOT', 'NoSpace'],
    ['EROFS', 'NotWritable'],
  ])('explains %s in plain words', async (system, code) => {
    const failure = Object.assign(new Error('write failed'), { code: system });
    await expect(explainDiskErrors(Promise.reject(failure))).rejects.toMatchObject({ code, cause: failure });
  });
});
