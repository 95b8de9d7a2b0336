// Attack: a body that is too large, comes a byte at a time, or inflates to a thousand times its size.
import { isUtf8 } from 'node:buffer';
import { BodyTooLargeError, DomainError, FieldProblems, InvalidError, limits, MalformedBodyError } from '@app/domain';
import { raw, type Request, type Response } from 'express';
import { findInexact } from './exact-json';
import { scanJson } from './json-scan';

const utf8 = 'utf-8';
/** A body is at most 1 MB: 30 s are time enough for a line of 300 kbit/s. */
export const bodyTimeoutMs = 30_000;
const methodsWithBody: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);
/** A byte order mark at the beginning is ignored. */
const decoder = new TextDecoder(utf8);
const notJson = 'it is not valid JSON';

// Not inflated: a thousand bytes that become a million would cost their sender nothing.
const readRaw = raw({ limit: limits.bodyBytes, type: () => true, inflate: false });

class UnsupportedMediaTypeError extends DomainError<'unsupportedType'> {
  constructor(got: string | undefined) {
    super(
      'unsupportedType',
      'UnsupportedMediaType',
      `The body must be JSON in UTF-8 (Content-Type: application/json), got ${got ?? 'no content type'}.`,
    );
  }
}

class BodyTimeoutError extends DomainError<'timeout'> {
  constructor(timeoutMs: number) {
    super('timeout', 'BodyTimeout', `The body must come within ${timeoutMs / 1000} s.`);
  }
}

/** Reads the bodies of JSON requests. */
export class JsonBody {
  /** Shorter in tests. */
  static timeoutMs = bodyTimeoutMs;

  /**
   * Whether a request has a JSON body to read.
   * @throws UnsupportedMediaTypeError for another type or charset; BodyTooLargeError
   */
  static isIn(request: Request): boolean {
    const { method, headers } = request;
    if (!methodsWithBody.has(method)) return false;
    if (headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0) return false;
    JsonBody.assertType(request);
    if (Number(headers['content-length'] ?? 0) > limits.bodyBytes) throw new BodyTooLargeError();
    return true;
  }

  /** @throws UnsupportedMediaTypeError for another type or charset than JSON in UTF-8 */
  static assertType(request: Request): void {
    const { headers } = request;
    if (!request.is(['json', '+json'])) throw new UnsupportedMediaTypeError(headers['content-type']);
    const charset = /;\s*charset\s*=\s*"?([^;"\s]*)/i.exec(headers['content-type'] ?? '')?.[1].toLowerCase() ?? utf8;
    if (charset !== utf8 && charset !== 'utf8') throw new UnsupportedMediaTypeError(headers['content-type']);
  }

  /**
   * Reads the body's bytes, after the guards have admitted the caller: without a key no body is read.
   * @throws UnsupportedMediaTypeError for a compressed one, BodyTooLargeError, BodyTimeoutError or MalformedBodyError
   */
  static read(request: Request, response: Response): Promise<Buffer> {
    sendContinue(request, response);
    return new Promise((resolve, reject) => {
      const { timeoutMs } = JsonBody;
      const refuse = (error: Error): void => {
        clearTimeout(timer);
        reject(error);
      };
      const timer = setTimeout(() => refuse(new BodyTimeoutError(timeoutMs)), timeoutMs);
      readRaw(request, response, (error?: unknown) => {
        if (error) return refuse(toDomain(error, request));
        clearTimeout(timer);
        resolve(request.body as Buffer);
      });
      // `readRaw` keeps no more of a body that is too large, but reports it only at its end, which may never come.
      let received = 0;
      request.on('data', ({ length }: Buffer) => {
        received += length;
        if (received > limits.bodyBytes) refuse(new BodyTooLargeError());
      });
    });
  }

  /**
   * Parses the bytes; an empty body, which clients send by mistake, counts as `{}`.
   * @throws MalformedBodyError; InvalidError for too many fields, levels or objects, and for what parsing would change
   * silently
   */
  static parse(bytes: Buffer): unknown {
    if (bytes.length === 0) return {};
    if (!isUtf8(bytes)) throw new MalformedBodyError('it is not UTF-8');
    const found = scanJson(bytes);
    if (found === 'malformed')
      throw new MalformedBodyError(
        `${notJson}: a bracket or a quotation mark is open at its end, or a bracket closes nothing`,
      );
    if (found)
      throw new InvalidError('ValidationFailed', `The body ${found.message}.`, [
        { pointer: '', message: found.message },
      ]);
    const text = decoder.decode(bytes);
    const body = parseJson(text);
    const problems = new FieldProblems();
    findInexact(text, problems);
    problems.throwIfAny();
    return body;
  }
}

/** @throws MalformedBodyError */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const position = / in JSON at position (\d+)(?: \(line \d+ column \d+\))?$/.exec(
      (error as SyntaxError).message,
    )?.[1];
    throw new MalformedBodyError(
      position === undefined ? notJson : `${notJson}, from its character ${Number(position) + 1} on`,
    );
  }
}

/** Sends `100 Continue` to a sender that expects it. */
export function sendContinue(request: Request, response: Response): void {
  if (/^100-continue$/i.test(request.headers.expect ?? '') && !response.headersSent) response.writeContinue();
}

/** Errors of `readRaw` as the caller gets them; a body that is too large has been refused before. */
function toDomain(error: unknown, { headers }: Request): Error {
  const { type, message } = error as { type?: string; message: string };
  if (type === 'encoding.unsupported')
    return new UnsupportedMediaTypeError(`Content-Encoding: ${headers['content-encoding']}`);
  return new MalformedBodyError(message);
}
