import { formatOf } from './picture-format';

/** First bytes, most of them as Pillow writes such a file. */
const box = (brand: string, others = ''): string =>
  Buffer.from(`\0\0\0\x20ftyp${brand}\0\0\0\0${others}`, 'latin1').toString('hex');

describe(formatOf.name, () => {
  it.each([
    ['89504e470d0a1a0a0000000d49484452', 'png'],
    ['ffd8ffe000104a46494600010100', 'jpeg'],
    ['524946460a01000057454250565038', 'webp'],
  ])('knows what is taken by its first bytes: %s', (head, format) => {
    expect(formatOf(Buffer.from(head, 'hex'))).toBe(format);
  });

  it.each([
    ...['heic', 'heix', 'heim', 'heis', 'hevc', 'hevx', 'hevm', 'hevs'].map((brand) => [box(brand), 'a HEIC picture']),
    [box('mif1', 'mif1heic'), 'a HEIC picture'],
    [box('msf1', 'msf1hevc'), 'a HEIC picture'],
    [box('avif', 'avifmif1miaf'), 'an AVIF picture'],
    [box('avis', 'avisavif'), 'an AVIF picture'],
    [box('mif1', 'mif1avif'), 'an AVIF picture'],
    [box('isom', 'isomiso2'), 'a video'],
    ['0000000c4a584c200d0a870a', 'a JPEG XL picture'],
    ['ff0a7a1f0090', 'a JPEG XL picture'],
    ['0000000c6a5020200d0a870a00000014667479706a703220', 'a JPEG 2000 picture'],
    ['ff4fff51002f', 'a JPEG 2000 picture'],
    ['49492a0008000000', 'a TIFF'],
    ['4d4d002a00000008', 'a TIFF'],
    ['49492b0008000000', 'a TIFF'],
    ['474946383761', 'a GIF'],
    ['424d36030000', 'a BMP'],
    ['384250530001', 'a PSD'],
    ['0000010001001010', 'an ICO'],
    ['255044462d312e34', 'a PDF'],
    ['252150532d41646f6265', 'a PostScript file'],
    ['50360a31362031360a', 'a PNM'],
    [Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>').toString('hex'), 'an SVG or another XML file'],
    [Buffer.from('\ufeff<?xml version="1.0"?><svg/>').toString('hex'), 'an SVG or another XML file'],
    [Buffer.from('\n<!doctype html>').toString('hex'), 'a page of HTML'],
    ['504b0304', 'a zip archive'],
    ['', 'no picture'],
  ])('says what else a file is, and what is needed: %s', (head, what) => {
    expect(() => formatOf(Buffer.from(head, 'hex'))).toThrow(`is ${what}, and a PNG, JPEG or WebP is needed`);
  });
});
