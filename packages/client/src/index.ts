export { createClient } from './client';
export type { Client } from './client';
export type { ClientOptions, RequestOptions } from './connection';
export {
  DarkroomError,
  GenerationFailedError,
  PromptFailedError,
  WaitTimeoutError,
  WebhookVerificationError,
} from './errors';
export type { EventOptions, TaskEvent } from './events';
export type { Reply, WithResponse } from './reply';
export type { components, operations, paths } from './schema';
export type * from './types';
export type { WaitOptions } from './wait';
export { verifyWebhook } from './webhook';
export type { WebhookHeaders } from './webhook';
