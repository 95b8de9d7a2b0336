import { kindOf } from './optimized-graph';

const intel = (changes: Record<string, string> = {}) =>
  Object.entries({
    processor: '0',
    vendor_id: 'GenuineIntel',
    'cpu family': '6',
    model: '207',
    'model name': 'Intel(R) Xeon(R) Processor',
    stepping: '2',
    'cpu MHz': '2300.000',
    flags: 'fpu sse2 avx2 avx512f',
    bogomips: '4600.00',
    ...changes,
  })
    .map(([name, value]) => `${name}\t: ${value}\n`)
    .join('');
const arm = (features: string, part: string) =>
  `processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: ${features}\nCPU implementer\t: 0x41\nCPU variant\t: 0x3\nCPU part\t: ${part}\nCPU revision\t: 1\n`;

describe(kindOf, () => {
  it.each([
    ['instructions', { flags: 'fpu sse2 avx2' }],
    ['model', { model: '85' }],
    ['family', { 'cpu family': '25' }],
    ['stepping', { stepping: '7' }],
  ])('differs by %s, which virtual machines hide behind one name', (_, changes) => {
    expect(kindOf(intel(changes))).not.toEqual(kindOf(intel()));
  });

  it('differs by the features and parts of ARM', () => {
    const kinds = [arm('fp asimd', '0xd0c'), arm('fp asimd sve', '0xd0c'), arm('fp asimd', '0xd40')].map(kindOf);
    expect(new Set(kinds.map((kind) => JSON.stringify(kind))).size).toBe(3);
  });

  it('is the same whatever the speed and the number of the cores', () => {
    const faster = intel({ 'cpu MHz': '3100.123', bogomips: '6200' });
    expect(kindOf(`${faster}\n${intel({ processor: '1' })}`)).toEqual(kindOf(intel()));
  });

  it('has every kind of core', () => {
    const [large, small] = [arm('fp', '0xd41'), arm('fp', '0xd05')];
    expect(kindOf(`${large}\n${small}`)).toEqual(kindOf(`${small}\n${large}`));
    expect(kindOf(`${large}\n${small}`)).not.toEqual(kindOf(large));
  });
});
