import type { Readable, Writable } from 'node:stream';
import { BodyTooLargeError, DomainError, MalformedBodyError } from '@app/domain';
import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import busboy from 'busboy';
import type { Request, Response } from 'express';
import { sendContinue } from '../defence/json-body';
import { UploadStalledError, uploadProgress } from './receive-file';

/** Far more than a form of ours has. */
const bounds = { files: 4, fields: 20, parts: 24, fieldSize: 16_000 };

/** A form that a caller sends. */
export interface SentForm {
  /** Reads it: see `readForm`. */
  read: (take: (file: FormFile) => Promise<void>) => Promise<Map<string, string>>;
  /** Notes its texts and the hashes of its files: a repeat with the same Idempotency-Key has to bring the same. */
  came: (values: Readonly<Record<string, string>>) => void;
  /** Its being closed tells that the caller is not there any more. */
  answer: Writable;
}

/** The body as a form that is still to come. */
export const FormBody = createParamDecorator((_: unknown, context: ExecutionContext): SentForm => {
  const http = context.switchToHttp();
  const [request, answer] = [http.getRequest<Request>(), http.getResponse<Response>()];
  return {
    read: (take) => readForm(request, answer, take),
    came: (values) => {
      request.body = values;
    },
    answer,
  };
});

/** A file of a form, by the name of its field. */
export interface FormFile {
  name: string;
  content: Readable;
}

/**
 * Reads a form as it comes: its texts by name, and each file by `take`, one after the other; the form waits for it.
 * @throws DomainError for another body, one with too many parts, and one that breaks off or comes too slowly; what
 * `take` throws
 */
export function readForm(
  request: Request,
  response: Response,
  take: (file: FormFile) => Promise<void>,
): Promise<Map<string, string>> {
  if (!request.is('multipart/form-data') || request.headers['content-encoding'] !== undefined)
    throw new DomainError('unsupportedType', 'UnsupportedMediaType', 'The body must be a form (multipart/form-data).');
  sendContinue(request, response);
  return new Promise((resolve, reject) => {
    const texts = new Map<string, string>();
    let taking: Promise<void> = Promise.resolve();
    let came = 0;
    // Files have a clock of their own, which is as strict.
    const clock = setInterval(() => {
      if (came === 0) end(new UploadStalledError(uploadProgress));
      came = 0;
    }, uploadProgress.windowMs);
    const end = (error?: Error): void => {
      clearInterval(clock);
      request.unpipe(form);
      if (error) reject(error);
      else taking.then(() => resolve(texts), reject);
    };
    const form = openForm(request);
    form
      .on('field', (name, value, { valueTruncated }) => {
        if (valueTruncated) end(new BodyTooLargeError(bounds.fieldSize));
        else texts.set(name, value);
      })
      .on('file', (name, content) => {
        content.on('error', () => undefined);
        taking = taking.then(() => take({ name, content }));
        taking.catch(end);
      })
      .on('close', () => end())
      .on('error', (error) => end(new MalformedBodyError(error.message)));
    for (const limit of ['filesLimit', 'fieldsLimit', 'partsLimit'] as const)
      form.on(limit, () => end(new MalformedBodyError('it has too many parts')));
    request.on('data', ({ length }: Buffer) => (came += length));
    request.once('close', () => {
      if (!request.complete) end(new MalformedBodyError('it broke off'));
    });
    request.pipe(form);
  });
}

function openForm(request: Request) {
  try {
    return busboy({ headers: request.headers, limits: bounds });
  } catch (error) {
    throw new MalformedBodyError((error as Error).message);
  }
}
