import { type Config, CONFIG } from '@app/config';
import { Image, pictureFile, pictureParameter, thumbnailFile, thumbnailKeyOf } from '@app/domain';
import type { ShownPictures } from '@app/domain/http';
import { PresignedUrls } from '@app/storage';
import { Inject, Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';

export type StoredPicture = Pick<Image, 'token' | 'storageKey' | 'thumbnailBytes'>;

/** URLs of finished pictures: the service's own, or with `PICTURE_URLS=presigned` the store's, made anew each time. */
@Injectable()
export class ImageUrls {
  private readonly presigned: PresignedUrls | undefined;

  constructor(
    @InjectRepository(Image) private readonly images: Repository<Image>,
    @Inject(CONFIG) private readonly config: Config,
  ) {
    const { pictureUrls, pictureUrlSeconds, s3 } = config;
    if (pictureUrls === 'presigned' && s3) this.presigned = new PresignedUrls(s3, pictureUrlSeconds, pictureParameter);
  }

  /** URLs of each task's pictures in order, and of the first one's thumbnail; a task without pictures has none. */
  async ofTasks(taskIds: readonly string[]): Promise<Map<string, ShownPictures>> {
    const stored = new Map<string, Image[]>(taskIds.map((id) => [id, []]));
    if (taskIds.length === 0) return new Map();
    const found = await this.images
      .createQueryBuilder('image')
      .where('image.task_id = ANY(:taskIds)', { taskIds })
      .orderBy('image.task_id')
      .addOrderBy('image.index')
      .getMany();
    for (const image of found) stored.get(image.taskId)!.push(image);
    const shown = [...stored].map(async ([id, images]) => [id, await this.shown(images)] as const);
    return new Map(await Promise.all(shown));
  }

  /** Of one task's pictures, in order. */
  async shown(images: readonly StoredPicture[]): Promise<ShownPictures> {
    const small = images.find(({ thumbnailBytes }) => thumbnailBytes !== null);
    const [thumbnail, ...urls] = await Promise.all([
      small ? this.ofThumbnail(small) : null,
      ...images.map(({ token, storageKey }) => this.of(token, storageKey)),
    ]);
    return { images: urls, thumbnail };
  }

  /** Of a picture that has one. */
  ofThumbnail({ token, storageKey }: Pick<StoredPicture, 'token' | 'storageKey'>): Promise<string> {
    return this.url(thumbnailKeyOf(storageKey), thumbnailFile(token));
  }

  /** @param token the secret part; the extension of `storageKey` ends the URL. */
  of(token: string, storageKey: string): Promise<string> {
    return this.url(storageKey, pictureFile({ token, storageKey }));
  }

  private async url(storageKey: string, file: string): Promise<string> {
    const extension = file.slice(file.lastIndexOf('.') + 1);
    const contentType = `image/${extension === 'jpg' ? 'jpeg' : extension}`;
    return this.presigned?.of({ storageKey, contentType, file }) ?? `${this.config.publicUrl}/images/${file}`;
  }
}
