import type { IncomingMessage } from 'node:http';
import { get as getHttp } from 'node:http';
import { get as getHttps } from 'node:https';
import { networkReason, TransientError } from './transient-error';

export interface HttpGetOptions {
  headers: Record<string, string>;
  /** A connection that receives nothing for this long is closed. */
  idleTimeoutMs: number;
  signal: AbortSignal;
}

/**
 * One GET, without following redirects. It uses Node's http client and not fetch: one idle timeout covers connecting
 * and reading, nothing decodes the body, and a broken connection always ends the request (fetch was seen to hang).
 * @returns the response once its headers have arrived; reading its body throws when the connection breaks
 * @throws TransientError when there is no response
 */
export function httpGet(url: URL, { headers, idleTimeoutMs, signal }: HttpGetOptions): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const get = url.protocol === 'https:' ? getHttps : getHttp;
    let answer: IncomingMessage | undefined;
    const request = get(url, { headers, signal, timeout: idleTimeoutMs }, (response) => {
      answer = response;
      resolve(response);
    });
    request.on('timeout', () =>
      (answer ?? request).destroy(new Error(`nothing arrived for ${idleTimeoutMs / 1000} s`)),
    );
    request.on('error', (error) => {
      reject(
        new TransientError(`${url.host} cannot be reached (${networkReason(error)})`, undefined, { cause: error }),
      );
    });
  });
}

/** The chunks of a body. @throws TransientError when the connection breaks */
export async function* bodyOf(response: IncomingMessage): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of response) yield chunk as Buffer;
  } catch (error) {
    throw new TransientError(`the connection broke (${networkReason(error)})`, undefined, { cause: error });
  }
}

/** Waits; rejects with the signal's reason when the signal aborts. */
export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop);
      resolve();
    }, ms);
    signal.addEventListener('abort', stop, { once: true });
  });
}
