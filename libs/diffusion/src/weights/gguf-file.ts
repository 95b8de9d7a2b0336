import { GgufError, type GgufHeader, readGgufHeader } from '../gguf/gguf-header';
import { withFile } from '../tensor/byte-source';
import { type NamedTensors, UnknownFormError, WeightsFileError } from './named-tensor';

/** A GGUF file, of which only the header is read. @throws WeightsFileError if it is malformed */
export async function readGguf(file: string): Promise<Pick<GgufHeader, 'metadata'> & { tensors: NamedTensors }> {
  const { metadata, tensors } = await withFile(file, readGgufHeader).catch((error: unknown) => {
    if (!(error instanceof GgufError)) throw error;
    throw new (error.isOfForm ? UnknownFormError : WeightsFileError)(error.message, file);
  });
  const named = [...tensors].map(
    ([name, { type, shape, begin }]) => [name, { name, type, shape, file, offset: begin }] as const,
  );
  return { metadata, tensors: new Map(named) };
}
