import { isIdentifier } from '../common/identifier';
import { Id, Integer, Text, TextOrNull, Time, Word } from '../fields/fields-of-answers';
import { QueryParameter, WordParameter } from '../fields/fields-of-queries';
import { filteredCount } from './filtered';
import { TaskQueryDto } from './task-query.dto';
import { type TaskStatus, taskStatuses } from './task-status';

export const drawingKinds = ['generation', 'prompt'] as const;
export type DrawingKind = (typeof drawingKinds)[number];

/** A Generation or a Prompt among all of a caller's, in short. */
export class DrawingDto {
  @Word(drawingKinds, 'DrawingKind') kind: DrawingKind;
  @Id() id: string;
  @TextOrNull('Id of the Fine-Tune of a Prompt, which its routes name; null for a Generation.') finetune: string | null;
  @Text('The text as it was sent.') prompt: string;
  @Word(taskStatuses, 'GenerationStatus') status: TaskStatus;
  @TextOrNull('Why it failed, in plain words.') error: string | null;
  @Integer('How many pictures were asked for.') num_generations: number;
  @Integer(filteredCount) filtered: number;
  @Integer('Of each picture, in pixels.') width: number;
  @Integer('Of each picture, in pixels.') height: number;
  @TextOrNull('URL of a WebP of the first picture, of at most 384 pixels; null until there is one.', { format: 'iri' })
  thumbnail: string | null;
  @Time('When the request was accepted.') created_at: string;
}

/** Which drawings a list is limited to. */
export class DrawingQueryDto extends TaskQueryDto {
  @WordParameter({ description: 'Only Generations, or only Prompts.', values: drawingKinds }) kind?: DrawingKind;

  @QueryParameter<string>({
    description: 'Only Prompts of this Fine-Tune.',
    schema: { type: 'string', pattern: '^[A-Za-z0-9_-]{24}$' },
    read: (sent, refuse) => (isIdentifier(sent) ? sent : refuse('must be the id of a Fine-Tune')),
  })
  finetune?: string;
}
