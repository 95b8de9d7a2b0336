import { AbortError, cures, ModelFolderError, OutOfMemoryError, ProviderUnavailableError } from '@app/diffusion';
import { copyOfError, errorFromCopy } from './session-protocol';

describe(copyOfError.name, () => {
  it.each([
    new AbortError(),
    new OutOfMemoryError('Failed to allocate memory for requested buffer of size 1'),
    new ModelFolderError('/models/a/unet/model.onnx', 'is missing', cures.installAgain),
    new ProviderUnavailableError('cuda:0', 'CUDA failure 35'),
    new Error('CUDA failure 700: an illegal memory access was encountered'),
    Object.assign(new Error('of another kind'), { name: 'OtherError' }),
  ])('lets an error cross to another thread and stay what it is: %s', (error) => {
    const crossed = errorFromCopy(structuredClone(copyOfError(error)));
    expect(crossed.constructor).toBe(error.constructor);
    expect({ ...crossed, message: crossed.message, name: crossed.name }).toEqual({
      ...error,
      message: error.message,
      name: error.name,
    });
  });
});
