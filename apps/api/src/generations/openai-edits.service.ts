import { type Config, CONFIG } from '@app/config';
import { pictureUrl } from '@app/domain';
import { CreateImagesDto, type GenerationDto } from '@app/domain/http';
import { editsFolder } from '@app/tasks';
import { Inject, Injectable } from '@nestjs/common';
import { BodyPipe } from '../http/body';
import type { CallerKey } from '../http/caller.decorator';
import { type FormFile, refusedField, type SentForm } from '../http/form';
import type { Repeatable } from '../http/repeatable';
import { ModelsService } from '../models/models.service';
import { type StoredUpload, UploadedPicturesService } from '../uploads/uploaded-pictures.service';
import { GenerationsService } from './generations.service';
import { Unanswered } from './unanswered';

/** Its clients send a list of pictures under the second name. */
const imageNames = ['image', 'image[]'];
/** Under the open part of a mask nothing of the picture is kept. */
const maskedStrength = 1;

/** Generations from forms in the shape of OpenAI's API. */
@Injectable()
export class OpenaiEdits {
  private readonly body = new BodyPipe(CreateImagesDto);

  constructor(
    @Inject(CONFIG) private readonly config: Config,
    private readonly generations: GenerationsService,
    private readonly models: ModelsService,
    private readonly uploads: UploadedPicturesService,
    private readonly unanswered: Unanswered,
  ) {}

  /**
   * Keeps the pictures as uploads, which go with the Generation, and repaints the transparent part of the mask, or else
   * of the picture; a picture without one is drawn from as a whole.
   * @throws InvalidError and what `SentForm`, `UploadedPicturesService` and `GenerationsService` throw; then no upload
   * is left
   */
  async create(caller: CallerKey, form: SentForm, repeatable: Repeatable): Promise<GenerationDto> {
    const files = new Map<'image' | 'mask', StoredUpload>();
    const noted: Record<string, string> = {};
    try {
      const texts = await form.read(async (file) => {
        const field = fieldOf(file, files);
        files.set(field, await this.keep(caller.id, file, form.answer, (hash) => (noted[file.name] = hash)));
      });
      form.noteContent({ ...Object.fromEntries(texts), ...noted });
      const earlier = await this.unanswered.take(caller.id, repeatable);
      if (earlier) await this.removeAll(caller.id, files);
      return earlier ?? (await this.draw(caller, this.read(texts), files));
    } catch (error) {
      await this.removeAll(caller.id, files);
      throw error;
    }
  }

  private async removeAll(ownerId: string, files: ReadonlyMap<string, StoredUpload>): Promise<void> {
    for (const { upload } of files.values()) await this.uploads.remove(ownerId, upload.id).catch(() => undefined);
  }

  private keep(
    ownerId: string,
    { content }: FormFile,
    answer: SentForm['answer'],
    noteHash: (hash: string) => void,
  ): Promise<StoredUpload> {
    return this.uploads.add(
      ownerId,
      { assertBare: () => undefined, begin: () => content, noteHash, answer },
      editsFolder,
    );
  }

  /** A form has only texts: those of numeric fields are parsed. @throws InvalidError */
  private read(texts: ReadonlyMap<string, string>): CreateImagesDto {
    const noFile = [...imageNames, 'mask'].find((name) => texts.has(name));
    if (noFile !== undefined) throw refusedField(noFile, 'must be a file: a part with a `filename`');
    const n = texts.get('n');
    const count = n !== undefined && /^-?\d{1,9}$/.test(n) ? { n: Number(n) } : {};
    return this.body.transform({ ...Object.fromEntries(texts), ...count }) as CreateImagesDto;
  }

  private async draw(
    caller: CallerKey,
    { prompt, model, n, size = 'auto', user }: CreateImagesDto,
    files: ReadonlyMap<'image' | 'mask', StoredUpload>,
  ): Promise<GenerationDto> {
    const image = files.get('image');
    if (!image) throw refusedField('image', 'is required');
    const mask = files.get('mask') ?? (image.isTransparent ? image : undefined);
    if (mask) assertMask(mask, image);
    const aspectRatio = size === 'auto' ? undefined : await this.models.shapeOf(size, model);
    const urlOf = ({ upload }: StoredUpload): string => pictureUrl(this.config.publicUrl, upload);
    return this.generations.create(caller, {
      prompt,
      image: urlOf(image),
      ...(mask && { mask: urlOf(mask), maskOf: 'transparent', strength: maskedStrength }),
      ...(model !== undefined && { model }),
      ...(n !== undefined && { num_generations: n }),
      ...(aspectRatio && { aspect_ratio: aspectRatio }),
      ...(user !== undefined && { metadata: { user } }),
    });
  }
}

/** As OpenAI's API has it. @throws InvalidError */
function assertMask({ upload: mask, isTransparent }: StoredUpload, { upload: image }: StoredUpload): void {
  const sizes = [mask, image].map(({ width, height }) => `${width} x ${height}`);
  if (sizes[0] !== sizes[1])
    throw refusedField('mask', `must be of the size of "image", ${sizes[1]}, and is ${sizes[0]}`);
  if (!isTransparent) throw refusedField('mask', 'must have transparent parts, which are repainted');
}

function fieldOf({ name }: FormFile, files: ReadonlyMap<string, unknown>): 'image' | 'mask' {
  const field = imageNames.includes(name) ? 'image' : name;
  if (field !== 'image' && field !== 'mask')
    throw refusedField(name, 'is not a known file; a form has "image" and "mask"');
  if (files.has(field)) throw refusedField(field, 'is there twice; one picture is changed at a time');
  return field;
}
