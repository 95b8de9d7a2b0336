import { newIdentifier } from '@app/domain';
import type { NewTask } from '@app/tasks';

/** A Generation's task as the intake writes it; any field may be set. */
export const newTask = (ownerId: string, values: Partial<NewTask> = {}): NewTask => ({
  id: newIdentifier(),
  kind: 'generation',
  ownerId,
  endUser: null,
  finetuneId: null,
  prompt: 'a star',
  negativePrompt: null,
  promptChunks: null,
  cfg: 7.5,
  steps: 30,
  seed: 1,
  scheduler: null,
  model: 'shapes',
  aspectRatio: 'square',
  width: 512,
  height: 512,
  highResolution: false,
  outputFormat: 'png',
  promptWeighting: false,
  inputs: null,
  numImages: 1,
  sandbox: false,
  createdAt: new Date(),
  ...values,
});
