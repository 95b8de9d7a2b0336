import { isUtf8 } from 'node:buffer';
import { InvalidError, limits } from '@app/domain';
import type { Request, Response } from 'express';
import { json } from 'express';
import { bodyTimeoutMs, welcomeBody } from './connections';
import { scanJson } from './json-scan';
import { BodyTimeoutError, BodyTooLargeError, MalformedBodyError, UnsupportedMediaTypeError } from './http-errors';

/** A body that breaks a bound on what it is made of. */
class BodyShapeError extends Error {}

const notJson = 'it is not valid JSON';

const parse = json({
  limit: limits.bodyBytes,
  strict: false,
  type: () => true,
  verify: (_request, _response, bytes, encoding) => {
    if (encoding !== 'utf-8' || !isUtf8(bytes)) throw new Error('it is not UTF-8');
    const found = scanJson(bytes);
    if (found === 'malformed') throw new Error(notJson);
    if (found) throw new BodyShapeError(found.message);
  },
});

/** Bodies of JSON requests. */
export class JsonBody {
  /** Tests wait for less. */
  static timeoutMs = bodyTimeoutMs;

  /**
   * Reads the body where there is one, after the guards have let the caller in, so that a stranger's body is never read.
   * @throws UnsupportedMediaTypeError, BodyTooLargeError, BodyTimeoutError or MalformedBodyError; InvalidError for one of too many fields, levels or objects
   */
  static async read(request: Request, response: Response): Promise<void> {
    const { method, headers } = request;
    if ((method !== 'POST' && method !== 'PUT') || isBinary(request)) return;
    if (headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0) return;
    if (!request.is(['json', '+json'])) throw new UnsupportedMediaTypeError(headers['content-type']);
    if (Number(headers['content-length'] ?? 0) > limits.bodyBytes) throw new BodyTooLargeError();
    welcomeBody(request, response);
    await new Promise<void>((resolve, reject) => {
      const { timeoutMs } = JsonBody;
      const timer = setTimeout(() => reject(new BodyTimeoutError(timeoutMs)), timeoutMs);
      parse(request, response, (error?: unknown) => {
        clearTimeout(timer);
        if (error) reject(toDomain(error));
        else resolve();
      });
    });
  }
}

/** An upload of weights is streamed by its own route, which is found whatever the case of a path and with a slash at its end. */
function isBinary(request: Request): boolean {
  return request.method === 'PUT' && (request.route as { path: string }).path.endsWith('/weights');
}

function toDomain(error: unknown): Error {
  const { type, message } = error as { type?: string; message: string };
  if (error instanceof BodyShapeError)
    return new InvalidError('ValidationFailed', `The body ${message}.`, [{ pointer: '', message }]);
  switch (type) {
    case 'entity.too.large':
      return new BodyTooLargeError();
    case 'charset.unsupported':
    case 'encoding.unsupported':
      return new UnsupportedMediaTypeError(message);
    default:
      return new MalformedBodyError(type === 'entity.parse.failed' ? notJson : message);
  }
}
