import type { Readable } from 'node:stream';
import { type Image, isIdentifier, thumbnailKeyOf, TooManyError } from '@app/domain';
import { type ByteRange, IMAGE_STORAGE, type ImageStorage } from '@app/storage';
import { FairTurns, TurnsFullError } from '@app/process';
import { Transactions } from '@app/queue';
import { Inject, Injectable } from '@nestjs/common';

/** A picture, ready to send. */
export interface StoredImage {
  ownerId: string;
  contentType: string;
  bytes: number;
  stream: Readable;
  open: (range: ByteRange) => Promise<Readable | undefined>;
}

interface Found extends Pick<Image, 'token' | 'storageKey' | 'contentType'> {
  ownerId: string;
}

/** Finds pictures, uploads and thumbnails; a public Style has no owner. */
const findStatement = `
SELECT image.token, image.storage_key AS "storageKey", image.content_type AS "contentType", task.owner_id AS "ownerId"
FROM images image JOIN tasks task ON task.id = image.task_id
WHERE image.token = $1
UNION ALL
SELECT token, storage_key, content_type, owner_id FROM uploaded_pictures WHERE token = $1
UNION ALL
SELECT thumbnail_token, thumbnail_key, 'image/png', coalesce(owner_id, 'public')
FROM styles WHERE thumbnail_token = $1 AND thumbnail_key IS NOT NULL`;

/** Pictures that are opened and sent at a time, per owner and in total; and how many may wait. */
const turns = { concurrency: 12, keyConcurrency: 6, perKey: 2_000 };
/** A reader that takes longer loses its turn: it is slow, and so causes little work. */
const turnMs = 100;

class TooManyPicturesError extends TooManyError {
  constructor(retryAfterSeconds = 1) {
    super(
      'TooManyRequests',
      'Too many pictures of one owner are being read; ask again in a moment.',
      retryAfterSeconds,
    );
  }
}

/** Finds pictures and thumbnails by the secret part of their URL. */
@Injectable()
export class ImagesService {
  private readonly turns = new FairTurns(turns);
  constructor(
    private readonly transactions: Transactions,
    @Inject(IMAGE_STORAGE) private readonly storage: ImageStorage,
  ) {}

  /**
   * Sends a picture; owners take turns, each with a few at a time.
   * @param file `<token>.<extension>`, or `<token>.thumbnail.webp` for the thumbnail of a drawing's first picture.
   * @param send resolves when everything has been sent.
   * @returns false if no record has it.
   * @throws TooManyPicturesError
   */
  async serve(file: string, send: (image: StoredImage) => Promise<void>): Promise<boolean> {
    const [, token, small, extension] = /^([\w-]+)(\.thumbnail(?=\.webp$))?\.(\w+)$/.exec(file) ?? [];
    if (!isIdentifier(token)) return false;
    const statement = { name: 'find-picture', text: findStatement, values: [token] };
    const [found] = await this.transactions.query<Found | undefined>(statement);
    if (!found || !(small || found.storageKey.endsWith(`.${extension}`))) return false;
    const { ownerId } = found;
    const storageKey = small ? thumbnailKeyOf(found.storageKey) : found.storageKey;
    const contentType = small ? 'image/webp' : found.contentType;
    const end = await this.turns.take(ownerId).catch((error: unknown) => {
      throw error instanceof TurnsFullError ? new TooManyPicturesError() : error;
    });
    const timer = setTimeout(end, turnMs);
    try {
      const object = await this.storage.read(storageKey);
      const open = async (range: ByteRange) => (await this.storage.read(storageKey, range))?.stream;
      if (object) await send({ ownerId, contentType, open, ...object });
      return object !== undefined;
    } finally {
      clearTimeout(timer);
      end();
    }
  }
}
