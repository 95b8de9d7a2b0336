import type { Readable } from 'node:stream';
import { Image, isIdentifier, Style } from '@app/domain';
import type { ImageStorage } from '@app/storage';
import { Inject, Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { IMAGE_STORAGE } from '../storage.token';

/** A picture ready to be sent. */
export interface OpenImage {
  /** Whose picture it is. */
  ownerId: string;
  contentType: string;
  bytes: number;
  stream: Readable;
}

interface Found extends Pick<Image, 'storageKey' | 'contentType'> {
  ownerId: string;
}

/** Finds pictures and thumbnails by the secret part of their URL. */
@Injectable()
export class ImagesService {
  constructor(
    @InjectRepository(Image) private readonly images: Repository<Image>,
    @InjectRepository(Style) private readonly styles: Repository<Style>,
    @Inject(IMAGE_STORAGE) private readonly storage: ImageStorage,
  ) {}

  /** @param file `<token>.<extension>`. Undefined when no record has it any more. */
  async open(file: string): Promise<OpenImage | undefined> {
    const [token, extension, ...rest] = file.split('.');
    if (rest.length > 0 || !isIdentifier(token)) return undefined;
    const found = (await this.findImage(token)) ?? (await this.findThumbnail(token));
    if (!found || !found.storageKey.endsWith(`.${extension}`)) return undefined;
    const object = await this.storage.read(found.storageKey);
    return object && { ownerId: found.ownerId, contentType: found.contentType, ...object };
  }

  private async findImage(token: string): Promise<Found | undefined> {
    const image = await this.images.findOne({
      select: { id: true, storageKey: true, contentType: true, task: { id: true, ownerId: true } },
      where: { token },
      relations: { task: true },
    });
    return image ? { ...image, ownerId: image.task.ownerId } : undefined;
  }

  private async findThumbnail(token: string): Promise<Found | undefined> {
    const style = await this.styles.findOneBy({ thumbnailToken: token });
    if (!style?.thumbnailKey) return undefined;
    // A public Style is nobody's.
    return { storageKey: style.thumbnailKey, contentType: 'image/png', ownerId: style.ownerId ?? 'public' };
  }
}
