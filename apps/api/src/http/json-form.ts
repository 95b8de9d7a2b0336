import { once } from 'node:events';
import { PassThrough, type Readable } from 'node:stream';
import { BodyTooLargeError, FieldProblems, InvalidError, limits, MalformedBodyError } from '@app/domain';
import { isReceived } from '@app/domain/http';
import type { Request, Response } from 'express';
import { JsonBody, sendContinue } from '../defence/json-body';
import { uploadProgress, UploadStalledError } from './receive-file';

/** Of a file in a body of JSON, what stands in its place. */
const placeOf = (index: number): string => `data:${index}`;
/** Some programs write a slash with a backslash; a quotation mark that has one is in a string. */
const opening = /(?<!\\)"data:image\\?\//;
const longestOpening = String.raw`"data:image\/`.length;
const quote = '"'.charCodeAt(0);
/** More than a media type with parameters has. */
const maxHeader = 200;
const most = limits.usedReferences + 1;

/** The pictures of a body, of which each is a data URL. @param place what stands in its place in the JSON */
export type TakePicture = (file: { place: string; content: Readable }) => Promise<void>;

/**
 * Reads JSON with pictures in data URLs as it comes: each picture goes to `take` while it arrives, one after the other,
 * and is a short name in the value, so that none is in memory. What is left has the bounds of any other JSON.
 * @throws what `JsonBody` and `take` throw; DomainError for too many pictures, and for a body that breaks off or comes
 * too slowly. By then nothing is being taken any more.
 */
export async function readJsonForm(request: Request, response: Response, take: TakePicture): Promise<unknown> {
  sendContinue(request, response);
  const splitter = new Splitter(take);
  const pieces = request.iterator({ destroyOnReturn: false }) as AsyncIterator<Buffer, undefined>;
  const clock = new ProgressClock(() => splitter.isTaking);
  try {
    for (;;) {
      const piece = await Promise.race([next(pieces), clock.stalled, splitter.failed]);
      if (!piece) break;
      clock.add(piece.length);
      await Promise.race([splitter.add(piece), splitter.failed]);
    }
    const value = JsonBody.parse(splitter.end());
    refuseOwnPlaces(value, splitter.pictures);
    return value;
  } finally {
    clock.stop();
    await splitter.stop();
  }
}

/**
 * A caller who writes what stands in the place of a picture could name one that is elsewhere in the body.
 * @throws InvalidError
 */
function refuseOwnPlaces(value: unknown, pictures: number): void {
  const problems = new FieldProblems();
  const message = 'must have a data URL with a picture, or another text than "data:" and a digit';
  let places = 0;
  const open: { node: unknown; parent: string; key?: string }[] = [{ node: value, parent: '' }];
  for (let next = open.pop(); next; next = open.pop()) {
    const { node, parent, key } = next;
    if (isReceived(node)) {
      places++;
      problems.add(parent, key, message);
    } else if (typeof node === 'object' && node !== null) {
      const pointer = key === undefined ? parent : `${parent}/${key}`;
      for (const [name, child] of Object.entries(node)) open.push({ node: child, parent: pointer, key: name });
    }
  }
  if (places > pictures) problems.throwIfAny();
}

async function next(pieces: AsyncIterator<Buffer, undefined>): Promise<Buffer | undefined> {
  try {
    const { done, value } = await pieces.next();
    return done ? undefined : value;
  } catch (error) {
    throw new MalformedBodyError(`it broke off (${(error as Error).message})`);
  }
}

/** A promise that only fails, and what makes it fail. */
function failing(): [failed: Promise<never>, fail: (error: unknown) => void] {
  let fail: (error: unknown) => void = () => undefined;
  const failed = new Promise<never>((_, reject) => (fail = reject));
  failed.catch(() => undefined);
  return [failed, fail];
}

/** Fails when too few bytes come; a picture that is being taken has a clock of its own. */
class ProgressClock {
  readonly stalled: Promise<never>;
  private readonly timer: NodeJS.Timeout;
  private bytes = 0;

  constructor(isTaking: () => boolean) {
    const [stalled, fail] = failing();
    this.stalled = stalled;
    this.timer = setInterval(() => {
      if (this.bytes < uploadProgress.bytes && !isTaking()) fail(new UploadStalledError(uploadProgress));
      this.bytes = 0;
    }, uploadProgress.windowMs);
  }

  add(bytes: number): void {
    this.bytes += bytes;
  }

  stop(): void {
    clearInterval(this.timer);
  }
}

interface OpenPicture {
  content: PassThrough;
  taken: Promise<void>;
  /** Until its comma has come. */
  header?: string;
  /** Fewer than four characters of base64, which are three bytes. */
  rest: string;
}

/** Takes the data URLs out of a body. */
class Splitter {
  /** Rejects with the error of `take`. */
  readonly failed: Promise<never>;
  private readonly fail: (error: unknown) => void;
  private readonly texts: Buffer[] = [];
  private textBytes = 0;
  pictures = 0;
  private picture?: OpenPicture;
  /** The end of the text, which may be the beginning of a data URL. */
  private tail: Buffer = Buffer.alloc(0);

  constructor(private readonly take: TakePicture) {
    [this.failed, this.fail] = failing();
  }

  get isTaking(): boolean {
    return this.picture !== undefined;
  }

  async add(piece: Buffer): Promise<void> {
    let left: Buffer = Buffer.concat([this.tail, piece]);
    this.tail = Buffer.alloc(0);
    while (left.length > 0) left = this.picture ? await this.feed(this.picture, left) : this.skipText(left);
  }

  /** @throws MalformedBodyError if a picture is open */
  end(): Buffer {
    if (this.picture) throw new MalformedBodyError('it is not valid JSON: a picture in it has no end');
    this.addText(this.tail);
    return Buffer.concat(this.texts);
  }

  /** The picture that is being taken gets an error. */
  async stop(): Promise<void> {
    this.picture?.content.destroy(new Error('it broke off'));
    await this.picture?.taken.catch(() => undefined);
  }

  private skipText(left: Buffer): Buffer {
    const found = opening.exec(left.toString('latin1'));
    if (!found) {
      // One more byte than a part of `opening` has, because a backslash may stand before it.
      const kept = Math.max(0, left.length - longestOpening);
      this.addText(left.subarray(0, kept));
      this.tail = Buffer.from(left.subarray(kept));
      return Buffer.alloc(0);
    }
    if (this.pictures === most)
      throw new InvalidError('ValidationFailed', `The body must have at most ${most} pictures.`);
    const place = placeOf(this.pictures++);
    this.addText(left.subarray(0, found.index + 1));
    this.addText(Buffer.from(place));
    const content = new PassThrough();
    content.on('error', () => undefined);
    const taken = this.take({ place, content });
    taken.catch(this.fail);
    this.picture = { content, taken, header: '', rest: '' };
    return left.subarray(found.index + found[0].length);
  }

  /** Decodes what comes before the next quotation mark. @returns the rest, with that */
  private async feed(picture: OpenPicture, left: Buffer): Promise<Buffer> {
    const at = left.indexOf(quote);
    const isWhole = at >= 0;
    // A slash of base64 may have a backslash too.
    let text = left.toString('latin1', 0, isWhole ? at : left.length).replaceAll('\\', '');
    if (picture.header !== undefined) {
      const header = picture.header + text;
      const comma = header.indexOf(',');
      const isLong = comma < 0 && header.length > maxHeader;
      if (isLong || (comma < 0 && isWhole) || (comma >= 0 && !header.slice(0, comma).endsWith(';base64')))
        throw new InvalidError('ValidationFailed', 'A data URL must be data:image/…;base64,… with the picture.');
      picture.header = comma < 0 ? header : undefined;
      text = comma < 0 ? '' : header.slice(comma + 1);
    }
    text = picture.rest + text;
    const whole = isWhole ? text.length : text.length - (text.length % 4);
    picture.rest = text.slice(whole);
    if (!picture.content.write(Buffer.from(text.slice(0, whole), 'base64'))) await once(picture.content, 'drain');
    if (!isWhole) return Buffer.alloc(0);
    picture.content.end();
    await picture.taken;
    this.picture = undefined;
    // The quotation mark is text, and never the first of `opening`.
    this.addText(left.subarray(at, at + 1));
    return left.subarray(at + 1);
  }

  private addText(piece: Buffer): void {
    this.textBytes += piece.length;
    if (this.textBytes > limits.bodyBytes) throw new BodyTooLargeError();
    this.texts.push(Buffer.from(piece));
  }
}
