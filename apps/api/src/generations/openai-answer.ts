import { buffer } from 'node:stream/consumers';
import { Image, isTerminated, UnprocessableError } from '@app/domain';
import type { GenerationDto, ImageDto, ImagesDto } from '@app/domain/http';
import { IMAGE_STORAGE, type ImageStorage } from '@app/storage';
import { FairTurns } from '@app/process';
import { Inject, Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import type { EndedWait, WaitedAnswer } from '../http/route.decorators';

/** The default timeout of OpenAI's own clients. */
const waitSeconds = 600;
/**
 * Answers with pictures in base64 that are made at a time: each has up to eight pictures in memory. A key has at most
 * 20.
 */
const turns = { concurrency: 4, keyConcurrency: 1, perKey: 20 };

/** Makes OpenAI's answer of a Generation that was waited for. */
@Injectable()
export class OpenaiAnswer implements WaitedAnswer {
  /** Shorter in tests. */
  static waitSeconds = waitSeconds;

  private readonly turns = new FairTurns(turns);

  constructor(
    @InjectRepository(Image) private readonly images: Repository<Image>,
    @Inject(IMAGE_STORAGE) private readonly storage: ImageStorage,
  ) {}

  get waitSeconds(): number {
    return OpenaiAnswer.waitSeconds;
  }

  /** @throws UnprocessableError for a Generation without pictures */
  async present(generation: GenerationDto, wait: EndedWait): Promise<ImagesDto> {
    const { id, status, images, error, completed_at: completedAt } = generation;
    if (wait.isDeleted)
      throw new UnprocessableError('GenerationFailed', `The Generation ${id} was deleted before it was finished.`);
    if (!isTerminated(status))
      throw new UnprocessableError(
        'GenerationUnfinished',
        `The pictures are not finished yet. GET /v1/sd/text-to-image/${id} has them when they are.`,
      );
    if (status !== 'succeeded' || completedAt === null)
      throw new UnprocessableError('GenerationFailed', error ?? `The Generation ${id} was ${status}.`);
    const data =
      wait.responseFormat === 'b64_json'
        ? await this.turns.run(wait.ownerId, () => this.read(id))
        : images.map((url) => ({ url }));
    return { created: Math.floor(Date.parse(completedAt) / 1000), data };
  }

  private async read(taskId: string): Promise<ImageDto[]> {
    const found = await this.images.find({ where: { taskId }, order: { index: 'ASC' } });
    const data: ImageDto[] = [];
    for (const { storageKey } of found) {
      const object = await this.storage.read(storageKey);
      if (object) data.push({ b64_json: (await buffer(object.stream)).toString('base64') });
    }
    return data;
  }
}
