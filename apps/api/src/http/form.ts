import type { Readable, Writable } from 'node:stream';
import { BodyTooLargeError, DomainError, invalidAt, InvalidError, limits, MalformedBodyError } from '@app/domain';
import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import busboy from 'busboy';
import type { Request, Response } from 'express';
import { JsonBody, sendContinue } from '../defence/json-body';
import { readJsonForm } from './json-form';
import { uploadProgress } from './receive-file';

/** More than our forms have, of texts as long as a prompt. The bytes around files have the bounds of a JSON body. */
const bounds = { files: limits.usedReferences + 2, fields: 30, parts: 36, fieldSize: 4 * limits.promptLength };

/** A form that a caller sends, or JSON in its place. */
export interface SentForm {
  /** See `readContent`. */
  read: (take: TakeFile) => Promise<Record<string, unknown>>;
  isJson: boolean;
  /** Notes its fields and the hashes of its files: a repeat with the same Idempotency-Key must have the same. */
  noteContent: (values: Readonly<Record<string, unknown>>) => void;
  /** Closed when the caller has gone. */
  answer: Writable;
}

/** The body as a form that is still to come. */
export const FormBody = createParamDecorator((_: unknown, context: ExecutionContext): SentForm => {
  const http = context.switchToHttp();
  const [request, answer] = [http.getRequest<Request>(), http.getResponse<Response>()];
  return {
    read: (take) => readContent(request, answer, take),
    isJson: isJson(request),
    noteContent: (values) => {
      request.body = values;
    },
    answer,
  };
});

/** A file of a form. */
export interface FormFile {
  /** Undefined for one in JSON, where `place` stands in the value. */
  name?: string;
  /** Its name, from the second of it on with a number: what its hash is noted by. */
  place: string;
  content: Readable;
}

type TakeFile = (file: FormFile) => Promise<void>;

const isJson = (request: Request): boolean => Boolean(request.is(['json', '+json']));

/** The fields of a form, or of JSON in its place; as `readForm` and `readJsonForm` read them. */
export async function readContent(
  request: Request,
  response: Response,
  take: TakeFile,
): Promise<Record<string, unknown>> {
  if (!isJson(request)) return Object.fromEntries(await readForm(request, response, take));
  if (request.headers['content-encoding'] !== undefined) throw unsupported();
  JsonBody.assertType(request);
  const value = await readJsonForm(request, response, take);
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new InvalidError('ValidationFailed', 'The body must be a JSON object.', [
    { pointer: '', message: 'must be a JSON object' },
  ]);
}

const unsupported = () =>
  new DomainError(
    'unsupportedType',
    'UnsupportedMediaType',
    'The body must be a form (multipart/form-data), or JSON (application/json), and not compressed.',
  );

/**
 * Reads a form as it comes: its texts by name, and each file by `take`, one after the other; the form waits for it.
 * @throws DomainError for another body, one with too many parts, a text that is not UTF-8, and a form that breaks off
 * or comes too slowly; what `take` throws. By then nothing is being taken any more.
 */
async function readForm(request: Request, response: Response, take: TakeFile): Promise<Map<string, string>> {
  const form = openForm(request);
  const { windowMs } = uploadProgress;
  const texts = new Map<string, string>();
  const placeOf = numbered();
  let taking: Promise<void> = Promise.resolve();
  let files = 0;
  let clock: NodeJS.Timeout | undefined;
  sendContinue(request, response);
  try {
    await new Promise<void>((resolve, reject) => {
      // Files have a clock of their own; this one is for the bytes around them.
      const startClock = (): void => {
        clock = setTimeout(() => reject(new FormStalledError(windowMs)), windowMs);
      };
      startClock();
      form
        .on('field', (name = '', value, { valueTruncated }) => {
          const problem = valueTruncated ? tooLongText(name) : problemOfText(name, value, texts);
          if (problem) reject(problem);
          else texts.set(name, value!);
        })
        .on('file', (name, content) => {
          content.on('error', () => undefined);
          clearTimeout(clock);
          files++;
          const place = placeOf(name);
          taking = taking.then(() => (form.destroyed ? undefined : take({ name, place, content })));
          taking.then(() => {
            if (--files === 0 && !form.destroyed) startClock();
          }, reject);
        })
        .on('close', resolve);
      boundTexts(request, () => files === 0, reject);
      pipeInto(form, request, (reason) => reject(new MalformedBodyError(reason)));
    });
    await taking;
    return texts;
  } finally {
    request.unpipe(form);
    // The file that is being taken gets an error.
    form.destroy();
    await taking.catch(() => undefined);
    clearTimeout(clock);
  }
}

function numbered(): (name: string) => string {
  const counts = new Map<string, number>();
  return (name) => {
    const before = counts.get(name) ?? 0;
    counts.set(name, before + 1);
    return before === 0 ? name : `${name}${before}`;
  };
}

function boundTexts(request: Request, isOutside: () => boolean, refuse: (error: Error) => void): void {
  let bytes = 0;
  request.on('data', ({ length }: Buffer) => {
    if (isOutside()) bytes += length;
    if (bytes > limits.bodyBytes) refuse(new BodyTooLargeError());
  });
}

function pipeInto(form: ReturnType<typeof openForm>, request: Request, fail: (reason: string) => void): void {
  form.on('error', ({ message }) => fail(message));
  for (const limit of ['filesLimit', 'fieldsLimit', 'partsLimit'] as const)
    form.on(limit, () => fail('it has too many parts'));
  const onClose = (): void => {
    if (!request.readableEnded) fail('it broke off');
  };
  request.once('close', onClose);
  if (request.destroyed) onClose();
  request.pipe(form);
}

class FormStalledError extends DomainError<'timeout'> {
  constructor(windowMs: number) {
    super('timeout', 'UploadStalled', `The texts of the form took more than ${windowMs / 1000} s. Send it again.`);
  }
}

/** The error for a field of a form. */
export const refusedField = (field: string, message: string): InvalidError => invalidAt(`/${field}`, message);

function tooLongText(name: string): Error {
  const { message, fields } = refusedField(
    name,
    `must be at most ${bounds.fieldSize} bytes of text; a picture is sent as a file`,
  );
  return new DomainError('tooLarge', 'BodyTooLarge', message, { fields });
}

/** @param value undefined where its part names an unknown encoding; unreadable bytes have become U+FFFD. */
function problemOfText(name: string, value: string | undefined, texts: ReadonlyMap<string, string>): Error | undefined {
  if (texts.has(name)) return refusedField(name, 'is there twice');
  if (value === undefined || value.includes('\uFFFD'))
    return refusedField(name, 'must be text in UTF-8, without U+FFFD');
  return undefined;
}

function openForm(request: Request) {
  if (!request.is('multipart/form-data') || request.headers['content-encoding'] !== undefined) throw unsupported();
  try {
    return busboy({ headers: request.headers, limits: bounds });
  } catch (error) {
    throw new MalformedBodyError((error as Error).message);
  }
}
