import { type Config, CONFIG } from '@app/config';
import { Image, pictureUrl } from '@app/domain';
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

  /** URLs of each task's pictures in order; a task without pictures has an empty array. */
  async ofTasks(taskIds: readonly string[]): Promise<Map<string, string[]>> {
    const urls = new Map<string, string[]>(taskIds.map((id) => [id, []]));
    if (taskIds.length === 0) return urls;
    const found = await this.images
      .createQueryBuilder('image')
      .where('image.task_id = ANY(:taskIds)', { taskIds })
      .orderBy('image.task_id')
      .addOrderBy('image.index')
      .getMany();
    for (const image of found) urls.get(image.taskId)?.push(this.of(image.token, image.storageKey));
    return urls;
  }

  /** @param token the secret part; the extension of `storageKey` ends the URL. */
  of(token: string, storageKey: string): string {
    return pictureUrl(this.config.publicUrl, { token, storageKey });
  }
}
