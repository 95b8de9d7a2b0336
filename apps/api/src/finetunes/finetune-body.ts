import { InvalidError } from '@app/domain';
import { CreateFinetuneDto, CreateGenerationDto } from '@app/domain/http';
import { Body, type PipeTransform } from '@nestjs/common';
import { BodyPipe } from '../http/body';

/** Fields of a Fine-Tune that a text-to-image request does not have. */
const finetuneFields = [
  'name',
  'title',
  'token',
  'images_url',
  'weights_url',
  'weights_sha256',
  'captions',
  'prompts',
  'styles',
] as const;

const neither =
  'is required to draw pictures from it; a body with "name", and without "prompt", registers a Fine-Tune instead';

const both =
  'is not a known field of a Generation, which a body with "prompt" makes; leave "prompt" out to register a Fine-Tune';

/** The body of `POST /v1/finetunes`, which is a Fine-Tune or a text-to-image request. */
export const FinetuneOrGenerationBody = () => Body(new FinetuneOrGenerationPipe());

/** A body with a prompt, or without anything that only a Fine-Tune has, is a text-to-image request. */
export class FinetuneOrGenerationPipe implements PipeTransform {
  private readonly finetune = new BodyPipe(CreateFinetuneDto);
  private readonly generation = new BodyPipe(CreateGenerationDto);

  /**
   * @throws InvalidError naming every invalid field; `FineTuneNameMissing` or `PromptMissing` for a missing required
   * one.
   */
  transform(body: unknown): CreateFinetuneDto | CreateGenerationDto {
    if (typeof body !== 'object' || body === null || Array.isArray(body))
      return this.generation.transform(body) as CreateGenerationDto;
    if (!has(body, 'prompt') && finetuneFields.some((field) => has(body, field)))
      return this.finetune.transform(without(body, ['prompt'])) as CreateFinetuneDto;
    try {
      return this.generation.transform(without(body, finetuneFields)) as CreateGenerationDto;
    } catch (error) {
      throw error instanceof InvalidError ? inWordsOfBoth(error, has(body, 'prompt')) : error;
    }
  }
}

/** Adds to an error of a text-to-image request how its body would be a Fine-Tune. */
function inWordsOfBoth(error: InvalidError, hasPrompt: boolean): InvalidError {
  const pointers = hasPrompt ? finetuneFields.map((field) => `/${field}`) : ['/prompt'];
  const message = hasPrompt ? both : neither;
  let sentence = error.message;
  const fields = error.fields?.map((field) => {
    if (!pointers.includes(field.pointer ?? '')) return field;
    sentence = sentence.replace(`"${field.pointer}" ${field.message}`, `"${field.pointer}" ${message}`);
    return { ...field, message };
  });
  return new InvalidError(error.code, sentence, fields);
}

/** Null means that a field is not given. */
function has(body: object, field: string): boolean {
  return Object.hasOwn(body, field) && (body as Record<string, unknown>)[field] !== null;
}

/** The body without those of some fields that are null. */
function without(body: object, fields: readonly string[]): object {
  const absent = fields.filter((field) => Object.hasOwn(body, field) && !has(body, field));
  if (absent.length === 0) return body;
  return Object.fromEntries(Object.entries(body).filter(([field]) => !absent.includes(field)));
}
