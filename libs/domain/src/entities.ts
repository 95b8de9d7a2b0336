import { ApiKey } from './api-keys/api-key';
import { AuditEntry } from './audit/audit-entry';
import { Collection } from './collections/collection';
import { CursorKey, IdempotentReply, OldestBuild, ReadinessProbe } from './service/service-rows';
import { FairShare } from './fair-shares/fair-share';
import { FinetunePrompt } from './finetune-prompts/finetune-prompt';
import { Finetune } from './finetunes/finetune';
import { Training } from './finetunes/training';
import { Generation } from './generations/generation';
import { Image } from './tasks/image';
import { Drawing } from './tasks/drawing';
import { Task } from './tasks/task';
import { DrawableModel, InferenceWorker } from './inference-workers/inference-worker';
import { DailyUsage, DetailedUsage, RateBucket, StorageUse, Upload } from './api-keys/key-usage';
import { SignInCode } from './sign-in/sign-in-code';
import { Style } from './styles/style';
import { PictureUse, UploadedPicture } from './uploads/uploaded-picture';
import { WebhookAttempt } from './webhooks/webhook-attempt';
import { WebhookDelivery } from './webhooks/webhook-delivery';

/** Every table of the service, for the data source. */
export const entities = [
  ApiKey,
  AuditEntry,
  Collection,
  CursorKey,
  DailyUsage,
  DetailedUsage,
  DrawableModel,
  Drawing,
  FairShare,
  Finetune,
  FinetunePrompt,
  Generation,
  IdempotentReply,
  Image,
  Task,
  InferenceWorker,
  PictureUse,
  RateBucket,
  OldestBuild,
  ReadinessProbe,
  SignInCode,
  StorageUse,
  Style,
  Training,
  Upload,
  UploadedPicture,
  WebhookAttempt,
  WebhookDelivery,
];
