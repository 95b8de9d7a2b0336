import { randomInt } from 'node:crypto';
import { defaults, limits, newIdentifier } from '@app/domain';
import type { CreateGenerationDto, GenerationRecord } from '@app/domain/http';
import type { NewTask } from '@app/image-tasks';
import type { ModelDefaults } from '@app/model-store';
import type { Admission } from '../admission/admission.service';

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
    cfg: dto.cfg ?? own.cfg ?? defaults.cfg,
    steps: dto.steps ?? own.steps ?? defaults.steps,
    seed: dto.seed ?? randomInt(0, limits.seed + 1),
    scheduler: dto.scheduler ?? own.scheduler ?? null,
    model: dto.model ?? defaults.model,
    aspectRatio: dto.aspect_ratio ?? defaults.aspectRatio,
    highResolution: dto.high_resolution ?? defaults.highResolution,
    outputFormat: dto.output_format ?? 'png',
    promptWeighting: dto.prompt_weighting ?? false,
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
