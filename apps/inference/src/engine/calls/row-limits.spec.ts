import { type Device, modelWidths } from '@app/diffusion';
import { bytesPerRow, decodeBytes } from '../memory/picture-memory';
import { RowLimits } from './row-limits';

type Drawing = Parameters<RowLimits['of']>[1];

describe(RowLimits.name, () => {
  const facts = { widths: modelWidths({ textEncoder: {}, unet: {}, vaeDecoder: {} }) };
  const request = { width: 512, height: 512 };
  const drawing = { pipeline: { facts }, command: { model: { key: 'a' }, request } } as Drawing;
  const row = bytesPerRow(facts, request);
  const limitsOf = (device: Device, bytes: number, cheaper = false) =>
    new RowLimits(device, {
      callBytes: (_, decoding, lane) => (lane === undefined ? bytes : bytes / 2) - decoding,
      isCheaperPerRow: (_, rows) => cheaper && rows === 32,
    });
  const limit = (...settings: Parameters<typeof limitsOf>) => limitsOf(...settings).of('group', drawing);

  it('is 16 on the CPU, whose calls gain nothing from more', () => {
    expect([limit('cpu', Infinity), limit('cpu', Infinity, true)]).toEqual([16, 16]);
  });

  it('is 32 on a GPU, and 64 where a row of 32 takes clearly less time than one of 16', () => {
    expect([limit('cuda:0', Infinity), limit('webgpu', Infinity, true)]).toEqual([32, 64]);
  });

  it('leaves room for decoding a picture, on every device', () => {
    const bytes = 6 * row + decodeBytes(facts, request);
    expect([limit('cpu', bytes), limit('cuda:0', bytes), limit('cuda:0', bytes, true)]).toEqual([6, 4, 4]);
    expect(limit('cuda:0', 40 * row + decodeBytes(facts, request), true)).toBe(32);
  });

  it('is half of that in a lane, with room for decoding in each', () => {
    expect(limitsOf('cpu', Infinity).of('group', drawing, 0)).toBe(8);
    const bytes = 2 * (3 * row + decodeBytes(facts, request));
    expect(limitsOf('cpu', bytes).of('group', drawing, 1)).toBe(3);
  });

  it('is never less than one', () => {
    expect(limit('cpu', 0)).toBe(1);
  });

  it('is halved for a group whose call ran out of memory, as long as a picture is whole', () => {
    const limits = limitsOf('cuda:0', Infinity);
    expect(limits.halve('group', 32, 2)).toBe(true);
    expect([limits.of('group', drawing), limits.of('another', drawing)]).toEqual([16, 32]);
    expect(limits.halve('group', 2, 2)).toBe(false);
  });

  it('is never raised by the failure of a call, which may have begun before a smaller one failed', () => {
    const limits = limitsOf('cuda:0', Infinity);
    limits.halve('group', 8, 2);
    expect(limits.halve('group', 16, 2)).toBe(true);
    expect(limits.of('group', drawing)).toBe(4);
  });

  it('forgets what it has learnt of the kind used longest ago, after a hundred others', () => {
    const limits = limitsOf('cuda:0', Infinity);
    const rowsOf = (kind: number) => limits.of(`${kind}`, drawing);
    for (let kind = 0; kind < 100; kind++) limits.halve(`${kind}`, 32, 2);
    expect(rowsOf(0)).toBe(16);
    limits.halve('another', 32, 2);
    expect([rowsOf(1), rowsOf(0), rowsOf(99)]).toEqual([32, 16, 16]);
  });

  it('is tried again after many calls that went well', () => {
    const limits = limitsOf('cuda:0', Infinity);
    limits.halve('group', 32, 2);
    for (let i = 0; i < 999; i++) limits.noteCall('group');
    expect(limits.of('group', drawing)).toBe(16);
    limits.noteCall('group');
    expect(limits.of('group', drawing)).toBe(32);
  });
});
