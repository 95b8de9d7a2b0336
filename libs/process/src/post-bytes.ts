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
    for await (const part of partsOf(answer, signal)) {
      size += part.length;
      if (size > mostBytes) throw new Error(`it answers more than ${mostBytes} bytes`);
      parts.push(part);
    }
    return Buffer.concat(parts);
  } catch (error) {
    throw new Error(fetchFailure(error), { cause: error });
  }
}

/** The body of an answer. `fetch` may lose its signal to the garbage collection while it reads one. */
async function* partsOf({ body }: Response, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  if (!body) return;
  const reader = body.getReader();
  const stop = (): void => void reader.cancel().catch(() => undefined);
  signal.addEventListener('abort', stop);
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value as Uint8Array;
    signal.throwIfAborted();
  } finally {
    signal.removeEventListener('abort', stop);
    stop();
  }
}
