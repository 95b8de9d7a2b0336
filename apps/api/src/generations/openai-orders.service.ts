import { defaults, limits } from '@app/domain';
import type { CreateGenerationDto, CreateImagesDto, ImageQuality } from '@app/domain/http';
import type { InstalledModel } from '@app/model-store';
import { Injectable } from '@nestjs/common';
import { refusedField } from '../http/form';
import { ModelsService } from '../models/models.service';
import type { OwnOptions } from './generations.service';

/** Shares of a model's steps. */
const shares: Readonly<Record<ImageQuality, number>> = {
  ...{ low: 0.5, medium: 0.75, high: 1, xhigh: 1.5, max: 2 },
  ...{ auto: 1, standard: 1, hd: 1.5 },
};
/** A model with fewer steps, or drawn without guidance, was distilled: it draws well in its own number alone. */
const fewestSteps = 10;

/** What a body in the shape of OpenAI's API asks for, in the words of this service. */
@Injectable()
export class OpenaiOrders {
  constructor(private readonly models: ModelsService) {}

  /** @throws InvalidError; what `ModelsService` throws */
  async read(dto: CreateImagesDto): Promise<CreateGenerationDto & OwnOptions> {
    const { prompt, n, size = 'auto', output_format: format, output_compression: compression } = dto;
    if (compression !== undefined && compression < 100 && (format ?? defaults.outputFormat) === 'png')
      throw refusedField(
        'output_compression',
        'is for jpeg and webp; a PNG loses nothing, so leave it out or send 100',
      );
    const { name, served } = await this.models.servedForOpenai(dto.model);
    const asked = size === 'auto' ? undefined : await this.models.sizeOf(size, name);
    const user = dto.safety_identifier || dto.user;
    return {
      prompt,
      model: name,
      steps: stepsFor(dto.quality ?? 'auto', served),
      ...(n !== undefined && { num_generations: n }),
      ...asked,
      ...(format && { output_format: format }),
      ...(compression !== undefined && format !== 'png' && { compression }),
      ...(user && { user }),
    };
  }
}

function stepsFor(quality: ImageQuality, { defaults: own }: InstalledModel): number {
  const { steps, cfg } = { ...defaults, ...own };
  if (steps < fewestSteps || cfg <= 1) return steps;
  return Math.min(limits.steps.max, Math.round(steps * shares[quality]));
}
