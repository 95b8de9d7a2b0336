import { type Config, CONFIG } from '@app/config';
import { Image, pictureUrl, thumbnailUrl } from '@app/domain';
import type { ShownPictures } from '@app/domain/http';
import { Inject, Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';

/** Public URLs of finished pictures. */
@Injectable()
export class ImageUrls {
  constructor(
    @InjectRepository(Image) private readonly images: Repository<Image>,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  /** URLs of each task's pictures in order, and of the first one's thumbnail; a task without pictures has none. */
  async ofTasks(taskIds: readonly string[]): Promise<Map<string, ShownPictures>> {
    const urls = new Map<string, ShownPictures>(taskIds.map((id) => [id, { images: [], thumbnail: null }]));
    if (taskIds.length === 0) return urls;
    const found = await this.images
      .createQueryBuilder('image')
      .where('image.task_id = ANY(:taskIds)', { taskIds })
      .orderBy('image.task_id')
      .addOrderBy('image.index')
      .getMany();
    for (const { taskId, token, storageKey, thumbnailBytes } of found) {
      const shown = urls.get(taskId)!;
      shown.images.push(this.of(token, storageKey));
      if (thumbnailBytes !== null) shown.thumbnail = this.thumbnailOf(token);
    }
    return urls;
  }

  /** @param token the secret part; the extension of `storageKey` ends the URL. */
  of(token: string, storageKey: string): string {
    return pictureUrl(this.config.publicUrl, { token, storageKey });
  }

  thumbnailOf(token: string): string {
    return thumbnailUrl(this.config.publicUrl, token);
  }
}
