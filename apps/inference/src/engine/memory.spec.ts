import { type Device, type ModelFolder, type NamedTensor } from '@app/diffusion';
import { bytesPerRow, encodePictureBytes, sessionBytes, textWeightBytesOf, weightBytesOf } from './memory';

const count = 1000;

/** A part that has one weight of so many numbers. */
const part = (type: NamedTensor['type'], numbers = count) => new Map([['weight', { type, shape: [numbers] }]]);

/** Bytes of a number of the denoiser in memory. The autoencoder has no weights. */
function denoiserBytes(device: Device, tensors: ReturnType<typeof part>, numbers = count): number {
  const autoencoder = { weightsOf: () => new Map() };
  const model = { denoiser: { tensors }, autoencoder } as unknown as ModelFolder;
  return (weightBytesOf(model, device) - sessionBytes) / numbers;
}

describe(weightBytesOf, () => {
  it.each([
    ['cpu', 'F32', 4],
    ['cpu', 'BF16', 4],
    ['cpu', 'I8', 1],
    ['cuda:0', 'F32', 2],
    ['cuda:0', 'BF16', 2],
    ['cuda:0', 'I8', 2],
    ['webgpu', 'F32', 4],
    ['webgpu', 'I8', 4],
  ] as const)('counts on %s for a weight in %s %i bytes', (device, type, bytes) => {
    expect(denoiserBytes(device, part(type))).toBe(bytes);
  });

  it('counts half precision as it is on a processor where the part would be too large widened', () => {
    const numbers = 2 ** 31;
    expect(denoiserBytes('cpu', part('F16', numbers), numbers)).toBe(2);
    expect(denoiserBytes('cuda:0', part('F16', numbers), numbers)).toBe(2);
    expect(denoiserBytes('webgpu', part('F16', numbers), numbers)).toBe(4);
  });

  it('counts the decoder in float32 everywhere', () => {
    const autoencoder = { weightsOf: () => part('F16') };
    const model = { denoiser: { tensors: new Map() }, autoencoder } as unknown as ModelFolder;
    expect(weightBytesOf(model, 'cuda:0')).toBe(sessionBytes + 4 * count);
  });
});

describe(textWeightBytesOf, () => {
  it('counts each encoder as it is on the device', () => {
    const model = { conditioner: { encoders: [{ tensors: part('I8') }, { tensors: part('F32') }] } };
    const bytesOn = (device: Device) => textWeightBytesOf(model as unknown as ModelFolder, device) - sessionBytes;
    expect([bytesOn('cpu'), bytesOn('cuda:0'), bytesOn('webgpu')]).toEqual([5000, 4000, 8000]);
  });
});

describe('Pictures that are looked at', () => {
  const model = (takesReferences: boolean): ModelFolder =>
    ({
      denoiser: { takesReferences, rowBytes: (_: unknown, __: unknown, positions: number) => positions },
      autoencoder: {
        scaleFactor: 16,
        weightsOf: () => part('F32'),
        callBytes: ({ width, height }: { width: number; height: number }) => width * height,
      },
    }) as unknown as ModelFolder;
  const size = { width: 64, height: 32 };
  const references = [
    { width: 160, height: 96 },
    { width: 16, height: 16 },
  ];

  it('count in a row of a call by their positions, and so does one to start from', () => {
    expect(bytesPerRow(model(true), size, 'cpu')).toBe(0);
    expect(bytesPerRow(model(true), { ...size, references }, 'cpu')).toBe(60 + 1);
    expect(bytesPerRow(model(true), { ...size, image: {}, references }, 'cpu')).toBe(8 + 60 + 1);
    expect(bytesPerRow(model(false), { ...size, image: {} }, 'cpu')).toBe(0);
  });

  it('are encoded one after the other: the largest counts', () => {
    expect(encodePictureBytes(model(true), [size, ...references])).toBe(sessionBytes + 4 * count + 160 * 96);
  });
});
