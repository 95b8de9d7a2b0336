import { open } from 'node:fs/promises';
import { UnprocessableError } from '@app/domain';

/** First bytes of files that are sent by mistake. */
const others: readonly (readonly [bytes: readonly number[], what: string])[] = [
  [[0x50, 0x4b, 0x03, 0x04], 'a zip archive, as .pt, .pth, .ckpt and .bin files of PyTorch are'],
  [[0x80, 0x02], 'a Python pickle, as old .pt, .ckpt and .bin files are'],
  [[0x1f, 0x8b], 'compressed with gzip'],
  [[0x47, 0x47, 0x55, 0x46], 'a GGUF file'],
  [[0x89, 0x50, 0x4e, 0x47], 'a PNG picture'],
  [[0xff, 0xd8, 0xff], 'a JPEG picture'],
];

/**
 * Recognises a file that is no safetensors file: that begins with a length in eight bytes, below 2^40.
 * @throws UnprocessableError `WeightsMalformed`
 */
export async function refuseOtherFiles(path: string): Promise<void> {
  const file = await open(path);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(8), 0, 8, 0).finally(() => file.close());
  const isLength = bytesRead === 8 && buffer[5] === 0 && buffer[6] === 0 && buffer[7] === 0;
  if (isLength) return;
  const known = others.find(([bytes]) => bytes.every((byte, i) => i < bytesRead && buffer[i] === byte));
  const what = known ? `: it is ${known[1]}` : '';
  throw new UnprocessableError('WeightsMalformed', `This is not a safetensors file${what}.`);
}
