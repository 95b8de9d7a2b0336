import { postBytes } from '@app/process';
import { CredentialsError } from './errors';

const timeoutMs = 10_000;
/** Of an answer: many times what a time stamp takes, with the certificates of its server. */
const mostBytes = 100_000;

/** @param variable has the URL. @returns what is answered to bytes. @throws CredentialsError */
export async function posted(url: string, bytes: Buffer, type: string, variable: string): Promise<Buffer> {
  return postBytes(url, bytes, { headers: { 'Content-Type': type }, timeoutMs, mostBytes }).catch((error: Error) => {
    throw new CredentialsError(`${variable} does not do its part: ${error.message}.`);
  });
}
