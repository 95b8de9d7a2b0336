import { ApiKey } from './api-keys/api-key';
import { Collection } from './collections/collection';
import { CursorKey } from './cursors/cursor-key';
import { FairShare } from './fair-shares/fair-share';
import { FinetunePrompt } from './finetune-prompts/finetune-prompt';
import { Finetune } from './finetunes/finetune';
import { Generation } from './generations/generation';
import { IdempotentReply } from './idempotency/idempotent-reply';
import { Image } from './image-tasks/image';
import { ImageTask } from './image-tasks/image-task';
import { DrawableModel } from './inference-workers/drawable-model';
import { InferenceWorker } from './inference-workers/inference-worker';
import { RateBucket } from './rate-limits/rate-bucket';
import { ReadinessProbe } from './readiness/readiness-probe';
import { SignInCode } from './sign-in/sign-in-code';
import { StorageUse } from './storage-use/storage-use';
import { Upload } from './storage-use/upload';
import { Style } from './styles/style';
import { DailyUsage } from './usage/daily-usage';
import { WebhookAttempt } from './webhooks/webhook-attempt';
import { WebhookDelivery } from './webhooks/webhook-delivery';

/** Every table of the service, for the data source. */
export const entities = [
  ApiKey,
  Collection,
  CursorKey,
  DailyUsage,
  DrawableModel,
  FairShare,
  Finetune,
  FinetunePrompt,
  Generation,
  IdempotentReply,
  Image,
  ImageTask,
  InferenceWorker,
  RateBucket,
  ReadinessProbe,
  SignInCode,
  StorageUse,
  Style,
  Upload,
  WebhookAttempt,
  WebhookDelivery,
];
