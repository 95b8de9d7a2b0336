import { buffer } from 'node:stream/consumers';
import { DomainError, Image, isTerminated, UnprocessableError } from '@app/domain';
import type { GenerationDto, ImageDto, ImagesDto, ImagesUsageDto } from '@app/domain/http';
import { NoPictureError, PictureError, PictureReader, referenceTokens } from '@app/pictures';
import { FairTurns } from '@app/process';
import { IMAGE_STORAGE, type ImageStorage } from '@app/storage';
import { Inject, Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { longRequestsPerKey } from '../defence/open-requests';
import type { EndedWait, WaitedAnswer, WaitedExchange, WaitedStream } from '../http/route.decorators';
import { ModelsService } from '../models/models.service';
import { PromptLengths } from '../models/prompt-lengths.service';
import { OpenaiStream, type StreamFacts } from './openai-stream';
import { PartialImages } from './partial-images';
import { wishesOf } from './openai-wishes';

/** The default timeout of OpenAI's own clients. */
const waitSeconds = 600;
/** Answers with pictures in base64 that are made at a time: each has up to ten pictures in memory. */
const turns = { concurrency: 4, keyConcurrency: 1, perKey: longRequestsPerKey['waiting answer'] };
/** Names the weights in an answer whose body has no place for them. */
const modelHeader = 'X-Darkroom-Model';

/** Makes OpenAI's answer of a Generation that was waited for. */
@Injectable()
export class OpenaiAnswer implements WaitedAnswer {
  /** Shorter in tests. */
  static waitSeconds = waitSeconds;

  private readonly turns = new FairTurns(turns);

  constructor(
    @InjectRepository(Image) private readonly images: Repository<Image>,
    @Inject(IMAGE_STORAGE) private readonly storage: ImageStorage,
    private readonly models: ModelsService,
    private readonly lengths: PromptLengths,
    private readonly pictures: PictureReader,
    private readonly partials: PartialImages,
  ) {}

  get waitSeconds(): number {
    return OpenaiAnswer.waitSeconds;
  }

  async begin(generation: GenerationDto, { request, response }: WaitedExchange): Promise<WaitedStream | undefined> {
    const { id, model, served_by: servedBy, width, height } = generation;
    const drawnBy = servedBy ?? (await this.models.bases([model])).get(model);
    if (drawnBy !== undefined) response.setHeader(modelHeader, drawnBy);
    const wishes = wishesOf(request.body);
    if (!wishes.stream) return undefined;
    const kind = request.path.endsWith('/edits') ? 'image_edit' : 'image_generation';
    const facts: StreamFacts = { size: `${width}x${height}`, quality: wishes.quality, background: 'opaque' };
    const stream = new OpenaiStream(response, kind, facts);
    const stop = this.partials.follow(id, wishes.partialImages, (jpeg, index) => stream.partial(jpeg, index));
    response.once('close', stop);
    return stream;
  }

  /** @throws UnprocessableError for a Generation without pictures */
  async present(generation: GenerationDto, { ownerId, accountId, body, isDeleted }: EndedWait): Promise<ImagesDto> {
    const { id, status, error, filtered, completed_at: completedAt } = generation;
    if (isDeleted)
      throw new UnprocessableError('GenerationFailed', `The Generation ${id} was deleted before it was finished.`);
    if (!isTerminated(status))
      throw new UnprocessableError(
        'GenerationUnfinished',
        `The pictures are not finished yet. GET /v1/sd/text-to-image/${id} has them when they are.`,
      );
    if (status !== 'succeeded' || completedAt === null)
      throw new UnprocessableError(
        filtered > 0 ? 'moderation_blocked' : 'GenerationFailed',
        error ?? `The Generation ${id} was ${status}.`,
      );
    const { stream, responseFormat, quality, safetyIdentifier } = wishesOf(body);
    const found = await this.images.find({ where: { taskId: id }, order: { index: 'ASC' } });
    // A finished picture is not lost because its model is gone meanwhile.
    const usage = await this.usageOf({ ownerId, accountId }, generation).catch((error: unknown) => {
      if (error instanceof DomainError) return null;
      throw error;
    });
    const texts = stream || responseFormat !== 'url' ? await this.turns.run(ownerId, () => this.read(found)) : [];
    const isUrl = stream || responseFormat !== 'b64_json';
    return {
      created: Math.floor(Date.parse(completedAt) / 1000),
      data: generation.images.map((url, index) => ({
        ...(index in texts && { b64_json: texts[index] }),
        ...(isUrl && { url }),
      })) satisfies ImageDto[],
      usage,
      size: found.length > 0 ? `${found[0].width}x${found[0].height}` : '',
      quality,
      background: 'opaque',
      output_format: generation.output_format,
      safety_identifier: safetyIdentifier,
    };
  }

  private async read(images: readonly Image[]): Promise<string[]> {
    const texts: string[] = [];
    // Pictures that were filtered are missing: the place counts, as in `images`, and not the number.
    for (const [place, { storageKey }] of images.entries()) {
      const object = await this.storage.read(storageKey);
      if (object) texts[place] = (await buffer(object.stream)).toString('base64');
    }
    return texts;
  }

  /** What the model read: a picture that it starts from is none of it, and nothing is drawn in tokens. */
  private async usageOf(
    { ownerId, accountId }: Pick<EndedWait, 'ownerId' | 'accountId'>,
    { model, prompt, references }: GenerationDto,
  ): Promise<ImagesUsageDto> {
    const served = await this.models.served(model);
    const text = await this.lengths.tokensOf(ownerId, served, prompt);
    let image = 0;
    for (const url of references) image += await this.tokensOf(accountId, url);
    return {
      input_tokens: text + image,
      input_tokens_details: { image_tokens: image, text_tokens: text },
      output_tokens: 0,
      output_tokens_details: { image_tokens: 0, text_tokens: 0 },
      total_tokens: text + image,
    };
  }

  /** Of a picture that is looked at; 0 for one that is not kept here. */
  private async tokensOf(account: string, url: string): Promise<number> {
    try {
      const size = await this.pictures.shapeOf(url, { account, field: 'references' });
      return size ? referenceTokens(size) : 0;
    } catch (error) {
      if (error instanceof PictureError || error instanceof NoPictureError) return 0;
      throw error;
    }
  }
}
