import { type Config, CONFIG } from '@app/config';
import { DomainError, invalidAt, limits, pictureUrl } from '@app/domain';
import { CreateImagesDto, EditImagesDto, type GenerationDto, isReceived, type SentImageDto } from '@app/domain/http';
import { editsFolder } from '@app/tasks';
import { Inject, Injectable } from '@nestjs/common';
import { BodyPipe } from '../http/body';
import type { CallerKey } from '../http/caller.decorator';
import { type FormFile, refusedField, type SentForm } from '../http/form';
import type { Repeatable } from '../http/repeatable';
import { ModelsService } from '../models/models.service';
import { type StoredUpload, UploadedPicturesService } from '../uploads/uploaded-pictures.service';
import { GenerationsService } from './generations.service';
import { OpenaiOrders } from './openai-orders.service';
import { Unanswered } from './unanswered';

/** Its clients send a list of pictures under the second name. */
const imageNames = ['image', 'image[]'];
/** Under the open part of a mask nothing of the picture is kept. */
const maskedStrength = 1;

/** A file of the request, where it stands in it. */
interface SentFile extends Pick<FormFile, 'name' | 'place'> {
  stored: StoredUpload;
}

/** A picture of the request, and what is known of it before it is drawn. */
interface EditedPicture {
  url: string;
  size?: { width: number; height: number };
  isTransparent?: boolean;
}

interface EditedPictures {
  images: EditedPicture[];
  mask?: EditedPicture;
}

/** Generations from forms, or JSON, in the shape of OpenAI's API. */
@Injectable()
export class OpenaiEdits {
  private readonly form = new BodyPipe(CreateImagesDto);
  private readonly json = new BodyPipe(EditImagesDto);

  constructor(
    @Inject(CONFIG) private readonly config: Config,
    private readonly generations: GenerationsService,
    private readonly models: ModelsService,
    private readonly orders: OpenaiOrders,
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
    const files: SentFile[] = [];
    const noted: Record<string, string> = {};
    try {
      const fields = await form.read(async ({ name, place, content }) => {
        if (name !== undefined) assertKnown(name, files);
        const stored = await this.receive(caller.id, content, form.answer, (hash) => (noted[place] = hash));
        files.push({ name, place, stored });
      });
      form.noteContent({ ...fields, ...noted });
      const earlier = await this.unanswered.take(caller.id, repeatable);
      if (earlier) await this.discard(files);
      return earlier ?? (await this.draw(caller, form.isJson, fields, files));
    } catch (error) {
      await this.discard(files);
      throw error;
    }
  }

  private async discard(files: readonly SentFile[]): Promise<void> {
    for (const { stored } of files) await this.uploads.discard(stored.upload).catch(() => undefined);
  }

  private receive(
    ownerId: string,
    content: FormFile['content'],
    answer: SentForm['answer'],
    noteHash: (hash: string) => void,
  ): Promise<StoredUpload> {
    return this.uploads.receive(
      ownerId,
      { assertBare: () => undefined, begin: () => content, noteHash, answer },
      editsFolder,
    );
  }

  private async draw(
    caller: CallerKey,
    isJson: boolean,
    fields: Record<string, unknown>,
    files: readonly SentFile[],
  ): Promise<GenerationDto> {
    const json = isJson ? (this.json.transform(fields) as EditImagesDto) : undefined;
    const dto = json ?? (this.form.transform(withValues(fields)) as CreateImagesDto);
    const pictures = json ? await this.named(caller.accountId, json, files) : this.ofForm(files);
    const { images } = pictures;
    const isOne = images.length === 1;
    const order = await this.orders.read(dto);
    if (!isOne) await this.assertLooksAtSeveral(pictures, isJson ? 'images' : 'image', order.model!);
    const mask = pictures.mask ?? (isOne && images[0].isTransparent ? images[0] : undefined);
    if (mask) assertMask(mask, images[0]);
    // A text is looked at before the first upload is kept, with which a transaction may begin.
    await this.generations.assertWanted(caller.id, order);
    for (const { stored } of files) await this.uploads.keep(stored.upload);
    const drawn = {
      ...order,
      isWanted: true,
      ...(isOne ? { image: images[0].url } : { references: images.map(({ url }) => url) }),
      ...(mask && { mask: mask.url, maskOf: 'transparent' as const, strength: maskedStrength }),
    };
    return this.generations.create(caller, drawn).catch((error: unknown) => {
      throw isJson && error instanceof DomainError ? asSent(error as DomainError, isOne) : error;
    });
  }

  private ofForm(files: readonly SentFile[]): EditedPictures {
    const images = files.filter(({ name }) => name !== 'mask').map((file) => this.ofFile(file));
    const mask = files.find(({ name }) => name === 'mask');
    if (images.length === 0) throw refusedField('image', 'is required');
    return { images, ...(mask && { mask: this.ofFile(mask) }) };
  }

  private ofFile({ stored: { upload, isTransparent } }: SentFile): EditedPicture {
    return { url: pictureUrl(this.config.publicUrl, upload), size: upload, isTransparent };
  }

  /** The pictures that JSON has or names. */
  private async named(accountId: string, dto: EditImagesDto, files: readonly SentFile[]): Promise<EditedPictures> {
    const left = new Map(files.map((file) => [file.place, file]));
    const found = async ({ image_url: url, file_id: id }: SentImageDto, pointer: string): Promise<EditedPicture> => {
      if ((url === undefined) === (id === undefined)) throw invalidAt(pointer, 'must have image_url or file_id');
      if (id !== undefined) {
        const upload = await this.uploads.findOne(accountId, id);
        return { url: upload.url, size: upload };
      }
      const file = left.get(url!);
      left.delete(url!);
      if (!file && isReceived(url)) throw invalidAt(`${pointer}/image_url`, 'must be a data URL with a picture');
      return file ? this.ofFile(file) : { url: url! };
    };
    const images: EditedPicture[] = [];
    for (const [index, image] of dto.images.entries()) images.push(await found(image, `/images/${index}`));
    const mask = dto.mask && (await found(dto.mask, '/mask'));
    if (left.size > 0) throw refusedField('images', 'and "mask" alone take a picture, and another field has one');
    return { images, ...(mask && { mask }) };
  }

  /** @throws InvalidError */
  private async assertLooksAtSeveral({ mask }: EditedPictures, field: string, model: string): Promise<void> {
    const { cannot } = await this.models.served(model, '/model');
    if (cannot?.references !== undefined)
      throw refusedField(field, `has several pictures, and the model ${model} changes one at a time`);
    if (mask) throw refusedField('mask', 'is for one picture, and there are several');
  }
}

/** An error about the Generation that says where its pictures are in the JSON. */
function asSent({ kind, code, message, fields = [], retryAfterSeconds }: DomainError, isOne: boolean): DomainError {
  const places = new Map([
    ['mask', 'mask/image_url'],
    ...(isOne ? [['image', 'images/0/image_url'] as const] : []),
    ...Array.from({ length: limits.usedReferences }, (_, i) => [`references/${i}`, `images/${i}/image_url`] as const),
  ]);
  const placeOf = (pointer?: string) => pointer && `/${places.get(pointer.slice(1)) ?? pointer.slice(1)}`;
  let sentence = message;
  for (const [ours, theirs] of places) {
    const field = ours.replace(/\/(\d)/, '[$1]');
    sentence = sentence.replaceAll(`"/${ours}"`, `"/${theirs}"`).replaceAll(`\`${field}\``, `"/${theirs}"`);
  }
  const moved = fields.map(({ pointer, ...rest }) => ({ ...rest, pointer: placeOf(pointer) }));
  return new DomainError(kind, code, sentence, { fields: moved, retryAfterSeconds });
}

const numeric = ['n', 'output_compression', 'partial_images'];

/** A form has only texts: numbers and switches are parsed, and what is empty is not given. @throws InvalidError */
function withValues(texts: Record<string, unknown>): Record<string, unknown> {
  const noFile = [...imageNames, 'mask'].find((name) => Object.hasOwn(texts, name));
  if (noFile !== undefined) throw refusedField(noFile, 'must be a file: a part with a `filename`');
  const value = ([name, sent]: [string, unknown]): [string, unknown][] => {
    const text = String(sent);
    // A form has the fields of an object one by one.
    if (name.startsWith('svg[')) return [['svg', text]];
    if (text === '' && name !== 'prompt') return [];
    if (numeric.includes(name) && /^-?\d{1,9}$/.test(text)) return [[name, Number(text)]];
    return [[name, name === 'stream' && /^(true|false)$/.test(text) ? text === 'true' : text]];
  };
  return Object.fromEntries(Object.entries(texts).flatMap(value));
}

/** As OpenAI's API has it, where it is known. @throws InvalidError */
function assertMask({ size: mask, isTransparent }: EditedPicture, { size: image }: EditedPicture): void {
  if (mask && image && (mask.width !== image.width || mask.height !== image.height))
    throw refusedField(
      'mask',
      `must be of the size of "image", ${image.width} x ${image.height}, and is ${mask.width} x ${mask.height}`,
    );
  if (isTransparent === false) throw refusedField('mask', 'must have transparent parts, which are repainted');
}

/** @throws InvalidError */
function assertKnown(name: string, files: readonly SentFile[]): void {
  const isImage = imageNames.includes(name);
  if (name === 'markup') throw refusedField(name, 'is not taken here; draw what it marks into the picture');
  if (!isImage && name !== 'mask') throw refusedField(name, 'is not a known file; a form has "image" and "mask"');
  if (name === 'mask' && files.some((file) => file.name === 'mask')) throw refusedField(name, 'is there twice');
  const images = files.filter((file) => file.name !== 'mask');
  if (isImage && images.length === limits.usedReferences)
    throw refusedField('image', `is there more than ${limits.usedReferences} times`);
}
