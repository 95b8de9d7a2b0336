import { type Agent, get as getHttp, type IncomingMessage } from 'node:http';
import { get as getHttps } from 'node:https';
import proxyAgent from 'https-proxy-agent';
import { getProxyForUrl } from 'proxy-from-env';

interface HttpGetOptions {
  headers: Record<string, string>;
  /** A connection that receives nothing for this long is closed. */
  idleTimeoutMs: number;
  signal: AbortSignal;
}

/**
 * One GET, without following redirects. It uses Node's http client and not fetch: one idle timeout covers connecting
 * and reading, nothing decodes the body, and a broken connection always ends the request (fetch was seen to hang). It
 * goes through the proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY name.
 * @returns the response once its headers have arrived; reading its body throws when the connection breaks
 * @throws TransientError when there is no response
 */
export function httpGet(url: URL, { headers, idleTimeoutMs, signal }: HttpGetOptions): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const get = url.protocol === 'https:' ? getHttps : getHttp;
    const proxy = getProxyForUrl(url.href);
    // Its type is older than Node's.
    const agent = proxy ? (proxyAgent(proxy) as unknown as Agent) : undefined;
    let answer: IncomingMessage | undefined;
    const request = get(url, { headers, signal, agent, timeout: idleTimeoutMs }, (response) => {
      answer = response;
      resolve(response);
    });
    request.on('timeout', () =>
      (answer ?? request).destroy(new Error(`nothing arrived for ${idleTimeoutMs / 1000} s`)),
    );
    request.on('error', (error) => {
      reject(
        new TransientError(
          `${url.host} cannot be reached${proxy && ' through the proxy of the environment'} (${networkReason(error)})`,
          undefined,
          { cause: error },
        ),
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

/** A failure that a retry may overcome. */
export class TransientError extends Error {
  constructor(
    message: string,
    readonly retryAfterMs?: number,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** The most specific part of a network failure: `ECONNREFUSED`, `ENOTFOUND`, or the error's message. */
function networkReason(error: unknown): string {
  const { code, message } = error as { code?: string; message?: string };
  return code ?? message ?? String(error);
}
