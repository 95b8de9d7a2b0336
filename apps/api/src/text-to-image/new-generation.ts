import { defaults, newIdentifier } from '@app/domain';
import type { CreateGenerationDto, GenerationRecord } from '@app/domain/http';
import type { NewTask } from '@app/image-tasks';
import type { ModelDefaults } from '@app/model-store';
import type { Admission } from '../admission/admission.service';
import { resolvedOrder } from '../models/resolved-order';

/**
 * The row of a new Generation's task, with every default resolved and the seed chosen.
 * @param own defaults of the model that will draw it
 */
export function newGeneration(
  ownerId: string,
  dto: CreateGenerationDto,
  admission: Admission,
  own: ModelDefaults,
): NewGeneration {
  return {
    id: newIdentifier(),
    kind: 'generation',
    ownerId,
    finetuneId: null,
    prompt: dto.prompt,
    negativePrompt: dto.negative_prompt ?? null,
    model: dto.model ?? defaults.model,
    ...resolvedOrder(
      {
        ...dto,
        aspectRatio: dto.aspect_ratio,
        highResolution: dto.high_resolution,
        outputFormat: dto.output_format,
        promptWeighting: dto.prompt_weighting,
      },
      own,
    ),
    numImages: dto.num_generations ?? defaults.numGenerations,
    promptChunks: null,
    createdAt: new Date(),
    ...admission,
    generation: { webhook: dto.webhook ?? null, metadata: dto.metadata ?? null },
  };
}

type NewGeneration = NewTask & Required<Pick<NewTask, 'generation'>>;

/** The row as a query would return it right after the insert. */
export function asInserted({ generation, ...task }: NewGeneration): GenerationRecord {
  const untouched = { upscaler: null, servedBy: null, error: null, completedAt: null };
  return { id: task.id, ...generation, task: { ...task, ...untouched, status: 'queued' } };
}
