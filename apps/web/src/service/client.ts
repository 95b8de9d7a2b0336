// Not the client's index, which also has the check of webhooks.
export type { Client } from '../../../../packages/client/src/client';
export { createClient } from '../../../../packages/client/src/client';
export { DarkroomError } from '../../../../packages/client/src/errors';
export type { TaskEvent } from '../../../../packages/client/src/events';
export type { components } from '../../../../packages/client/src/schema';
export type {
  Activity,
  Collection,
  Drawing as ListedDrawing,
  Failure,
  Finetune,
  Generation,
  Key,
  KeyChange,
  KeyDelivery,
  Model,
  NewPrompt,
  Prompt,
  PromptStatus,
  Queue,
  Storage,
  Style,
  TerminatedPrompt,
  Usage,
  Worker,
} from '../../../../packages/client/src/types';
