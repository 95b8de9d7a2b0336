import { buffer } from 'node:stream/consumers';
import { type Config, CONFIG } from '@app/config';
import type { RgbImage } from '@app/diffusion';
import { limits, type PlaceInPicture, type Preprocessor } from '@app/domain';
import { RemoteError, RemoteFiles } from '@app/remote';
import { IMAGE_STORAGE, type ImageStorage } from '@app/storage';
import { Inject, Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import type { Decoded, WantedSize } from './decode-picture';
import { hasCredentials } from './has-credentials';
import { findOwnPicture } from './own-pictures';
import { PictureDecoder, type Wanted } from './picture-decoder';
import { NoPictureError, PictureError } from './picture-error';
import { formatOf } from './picture-format';
import type { Pixels, Size } from './pixels';

const remoteLimits = {
  ...{ maxBytes: limits.sentPicture.bytes, timeMs: 30_000, maxRedirects: 3, perOwner: 4 },
  headers: { 'User-Agent': 'darkroom-pictures', Accept: 'image/png, image/jpeg, image/webp' },
};

/** The owner of a picture, and the purpose that it is read for. */
export interface Reading {
  /** The key whose turn it is. */
  owner: string;
  /** Its account, whose pictures may be read. */
  account: string;
  /** Of the request, for messages: `image`, `control[0].image`. */
  field: string;
  /**
   * The picture is cropped around its middle to this shape, and scaled; by rules, to the size that they give its own.
   * Else it stays as it is.
   */
  size?: WantedSize;
  signal?: AbortSignal;
}

/** Facts about a picture. `width` and `height` are those of the whole picture, upright. */
export interface SourcePicture extends Size {
  /** Of the file, in hexadecimal. */
  sha256: string;
  /** The file itself, where it has Content Credentials. */
  credentials?: { bytes: Uint8Array; type: string };
}

/** A picture without transparency: it is put on white. */
export interface ReadPicture extends SourcePicture {
  image: RgbImage;
}

/** A mask: 255 where the picture is repainted, 0 where it is kept. */
export interface ReadMask extends SourcePicture {
  mask: Pixels;
}

/**
 * Reads pictures that requests name by a URL: an upload or a record's picture, both only their owner's, or a remote
 * one. Each is decoded in a process of its own. What cannot be read is a PictureError.
 */
@Injectable()
export class PictureReader {
  private readonly remote: RemoteFiles;

  constructor(
    @Inject(CONFIG) private readonly config: Config,
    @Inject(IMAGE_STORAGE) private readonly storage: ImageStorage,
    private readonly dataSource: DataSource,
    private readonly decoder: PictureDecoder,
  ) {
    this.remote = new RemoteFiles(config.picturesAllowPrivate, remoteLimits);
  }

  /**
   * The same file and size give the same bytes.
   * @param preprocess what is made of the picture
   * @throws PictureError; StorageUnavailableError and WorkError, which may pass; the signal's reason
   */
  async read(
    url: string,
    { preprocess, size, ...reading }: Reading & { preprocess?: Preprocessor },
  ): Promise<ReadPicture> {
    const wanted = { ...(size && { size }), ...(preprocess && { preprocess }) };
    const { pixels, ...source } = await this.decoded(url, reading, (file) => ({ ...file, ...wanted, to: 'rgb' }));
    return { ...source, image: pixels! };
  }

  /** The picture as it is in a larger one. @param place true: in its middle. @throws as `read` does */
  async readOutpainted(
    url: string,
    { size, place, ...reading }: Reading & { size: Size; place: true | PlaceInPicture },
  ): Promise<ReadPicture> {
    const { pixels, ...source } = await this.decoded(url, reading, (file) => ({
      ...file,
      size,
      place,
      to: 'outpaint',
    }));
    return { ...source, image: pixels! };
  }

  /** The picture in its own shape, as a model looks at it. @throws as `read` does */
  async readReference(url: string, reading: Omit<Reading, 'size'>): Promise<ReadPicture> {
    const { pixels, ...source } = await this.decoded(url, reading, (file) => ({ ...file, to: 'reference' }));
    return { ...source, image: pixels! };
  }

  /**
   * @param of what is repainted: what is white, as in `mask`, or what is transparent, as in OpenAI's edits
   * @param onto size of the whole picture to repaint: the mask is stretched to it, and then cropped like the picture
   * @throws as `read` does
   */
  async readMask(
    url: string,
    { of = 'white', onto, size, ...reading }: Reading & { size?: Size; of?: 'white' | 'transparent'; onto?: Size },
  ): Promise<ReadMask> {
    const sizes = { ...(size && { size }), ...(onto && { onto }) };
    const { pixels, ...source } = await this.decoded(url, reading, (file) => ({ ...file, ...sizes, to: 'mask', of }));
    return { ...source, mask: pixels! };
  }

  /**
   * The size of a picture that the service has; undefined for a remote one, which is not fetched.
   * @throws PictureError for one of this service that is missing or not the account's
   */
  async shapeOf(url: string, { account, field }: Pick<Reading, 'account' | 'field'>): Promise<Size | undefined> {
    const own = await this.own(url, account, field);
    return own && { width: own.width, height: own.height };
  }

  private async decoded(
    url: string,
    { owner, account, field, signal }: Reading,
    orderOf: (file: { source: Buffer }) => Wanted,
  ): Promise<Omit<Decoded, 'format'> & Pick<SourcePicture, 'credentials'>> {
    let file: Buffer | undefined;
    try {
      const own = await this.own(url, account, field);
      // A download must not hold the turn of others.
      const fetched = own ? undefined : await this.remote.get(owner, url, formatOf, signal);
      const { format, ...decoded } = await this.decoder.decode(owner, async () => {
        signal?.throwIfAborted();
        const source = fetched ?? (await this.stored(own!.storageKey));
        if (hasCredentials(source)) file = source;
        return orderOf({ source });
      });
      signal?.throwIfAborted();
      return { ...decoded, ...(file && { credentials: { bytes: file, type: `image/${format}` } }) };
    } catch (error) {
      if (error instanceof NoPictureError || error instanceof RemoteError)
        throw new PictureError(field, error.message, { cause: error });
      throw error;
    }
  }

  private async own(url: string, accountId: string, field: string) {
    const own = await findOwnPicture(this.dataSource, this.config.publicUrl, { accountId, url });
    if (own === null) throw new PictureError(field, notThere);
    return own;
  }

  private async stored(key: string): Promise<Buffer> {
    const object = await this.storage.read(key);
    if (!object) throw new NoPictureError(notThere);
    return buffer(object.stream);
  }
}

const notThere = 'is not there: no upload and no picture of yours has this URL, or not any more';
