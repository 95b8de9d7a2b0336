export { createClient } from './client.ts';
export type { Client } from './client.ts';
export type { ClientOptions, RequestOptions } from './connection.ts';
export {
  DarkroomError,
  GenerationFailedError,
  PromptFailedError,
  TrainingFailedError,
  WaitTimeoutError,
  WebhookVerificationError,
} from './errors.ts';
export type { EventOptions, TaskEvent } from './events.ts';
export type { Reply, WithResponse } from './reply.ts';
export type { components, operations, paths } from './schema.ts';
export type * from './types.ts';
export type { MakeOptions, WaitOptions } from './wait.ts';
export { verifyWebhook } from './webhook.ts';
export type { WebhookHeaders } from './webhook.ts';
