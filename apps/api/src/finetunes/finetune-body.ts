import { InvalidError } from '@app/domain';
import { CreateFinetuneDto, CreateGenerationDto } from '@app/domain/http';
import { Body } from '@nestjs/common';
import type { PipeTransform } from '@nestjs/common';
import { BodyPipe } from '../http/body';

/** Fields of a Fine-Tune that a text-to-image request does not have. */
const finetuneFields = ['name', 'title', 'token', 'images_url'] as const;

/** The body of `POST /v1/finetunes`, which is a Fine-Tune or a text-to-image request. */
export const FinetuneOrGenerationBody = () => Body(new FinetuneOrGenerationPipe());

/** A body with a prompt, or without anything that only a Fine-Tune has, is a text-to-image request. */
export class FinetuneOrGenerationPipe implements PipeTransform {
  private readonly finetune = new BodyPipe(CreateFinetuneDto);
  private readonly generation = new BodyPipe(CreateGenerationDto);

  /** @throws InvalidError naming every invalid field; `FineTuneNameMissing` or `PromptMissing` for a missing required one. */
  transform(body: unknown): CreateFinetuneDto | CreateGenerationDto {
    if (!isFinetune(body)) return this.generation.transform(body) as CreateGenerationDto;
    try {
      return this.finetune.transform(body) as CreateFinetuneDto;
    } catch (error) {
      if (error instanceof InvalidError && !Object.hasOwn(body, 'name'))
        throw new InvalidError('FineTuneNameMissing', error.message, error.fields);
      throw error;
    }
  }
}

function isFinetune(body: unknown): body is object {
  if (typeof body !== 'object' || body === null || Object.hasOwn(body, 'prompt')) return false;
  return finetuneFields.some((field) => Object.hasOwn(body, field));
}
