import { type Config, CONFIG } from '@app/config';
import { defaults, limits, pictureUrl } from '@app/domain';
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

/** The files of a form. */
interface SentFiles {
  images: StoredUpload[];
  mask?: StoredUpload;
}

const allOf = ({ images, mask }: SentFiles): StoredUpload[] => [...images, ...(mask ? [mask] : [])];

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
   * of the picture; a picture without one is drawn from as a whole. Several pictures are looked at.
   * @throws InvalidError and what `SentForm`, `UploadedPicturesService` and `GenerationsService` throw; then no upload
   * is left
   */
  async create(caller: CallerKey, form: SentForm, repeatable: Repeatable): Promise<GenerationDto> {
    const files: SentFiles = { images: [] };
    const noted: Record<string, string> = {};
    try {
      const texts = await form.read(async (file) => {
        const field = fieldOf(file, files);
        const stored = await this.receive(caller.id, file, form.answer, (hash) => (noted[file.place] = hash));
        if (field === 'mask') files.mask = stored;
        else files.images.push(stored);
      });
      form.noteContent({ ...Object.fromEntries(texts), ...noted });
      const earlier = await this.unanswered.take(caller.id, repeatable);
      if (earlier) await this.discard(files);
      return earlier ?? (await this.draw(caller, this.read(texts), files));
    } catch (error) {
      await this.discard(files);
      throw error;
    }
  }

  private async discard(files: SentFiles): Promise<void> {
    for (const { upload } of allOf(files)) await this.uploads.discard(upload).catch(() => undefined);
  }

  private receive(
    ownerId: string,
    { content }: FormFile,
    answer: SentForm['answer'],
    noteHash: (hash: string) => void,
  ): Promise<StoredUpload> {
    return this.uploads.receive(
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
    files: SentFiles,
  ): Promise<GenerationDto> {
    const [image, ...others] = files.images;
    if (!image) throw refusedField('image', 'is required');
    const isOne = others.length === 0;
    if (!isOne) await this.assertLooksAtSeveral(files, model);
    const mask = files.mask ?? (isOne && image.isTransparent ? image : undefined);
    if (mask) assertMask(mask, image);
    const asked = size === 'auto' ? undefined : await this.models.sizeOf(size, model);
    for (const { upload } of allOf(files)) await this.uploads.keep(upload);
    const urlOf = ({ upload }: StoredUpload): string => pictureUrl(this.config.publicUrl, upload);
    return this.generations.create(caller, {
      prompt,
      ...(isOne ? { image: urlOf(image) } : { references: files.images.map(urlOf) }),
      ...(mask && { mask: urlOf(mask), maskOf: 'transparent', strength: maskedStrength }),
      ...(model !== undefined && { model }),
      ...(n !== undefined && { num_generations: n }),
      ...asked,
      ...(user !== undefined && { metadata: { user } }),
    });
  }

  /** @throws InvalidError */
  private async assertLooksAtSeveral({ mask }: SentFiles, model: string = defaults.model): Promise<void> {
    const { cannot } = await this.models.served(model, '/model');
    if (cannot?.references !== undefined)
      throw refusedField('image', `is there several times, and the model ${model} changes one picture at a time`);
    if (mask) throw refusedField('mask', 'is for one picture, and there are several');
  }
}

/** As OpenAI's API has it. @throws InvalidError */
function assertMask({ upload: mask, isTransparent }: StoredUpload, { upload: image }: StoredUpload): void {
  const sizes = [mask, image].map(({ width, height }) => `${width} x ${height}`);
  if (sizes[0] !== sizes[1])
    throw refusedField('mask', `must be of the size of "image", ${sizes[1]}, and is ${sizes[0]}`);
  if (!isTransparent) throw refusedField('mask', 'must have transparent parts, which are repainted');
}

function fieldOf({ name }: FormFile, { images, mask }: SentFiles): 'image' | 'mask' {
  const field = imageNames.includes(name) ? 'image' : name;
  if (field !== 'image' && field !== 'mask')
    throw refusedField(name, 'is not a known file; a form has "image" and "mask"');
  if (field === 'mask' && mask) throw refusedField(field, 'is there twice');
  if (field === 'image' && images.length === limits.usedReferences)
    throw refusedField(field, `is there more than ${limits.usedReferences} times`);
  return field;
}
