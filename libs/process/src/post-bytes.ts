import { fetchFailure } from './fetch-failure';

interface Posting {
  headers: Readonly<Record<string, string>>;
  timeoutMs: number;
  /** Of the answer. */
  mostBytes: number;
}

/**
 * Posts a body to a service that the operator names. No redirect is followed.
 * @returns the body of the answer
 * @throws Error that says in half a sentence, without the URL, why there is none, such as `it answers 500`
 */
export async function postBytes(
  url: string,
  body: Buffer | string,
  { headers, timeoutMs, mostBytes }: Posting,
): Promise<Buffer> {
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    const answer = await fetch(url, { method: 'POST', redirect: 'error', body, headers, signal });
    if (!answer.ok) throw new Error(`it answers ${answer.status}`);
    const parts: Uint8Array[] = [];
    let size = 0;
    for await (const part of (answer.body ?? []) as AsyncIterable<Uint8Array>) {
      size += part.length;
      if (size > mostBytes) throw new Error(`it answers more than ${mostBytes} bytes`);
      parts.push(part);
    }
    return Buffer.concat(parts);
  } catch (error) {
    throw new Error(fetchFailure(error), { cause: error });
  }
}
