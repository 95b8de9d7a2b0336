import { RowsAreJobs1795830000000 } from './1795830000000-rows-are-jobs';
import { Initial1795200000000 } from './1795200000000-initial';
import { InferenceWorkers1795300000000 } from './1795300000000-inference-workers';
import { Idempotency1795400000000 } from './1795400000000-idempotency';
import { FairQueue1795500000000 } from './1795500000000-fair-queue';
import { KeyLimits1795510000000 } from './1795510000000-key-limits';
import { Retention1795520000000 } from './1795520000000-retention';
import { Deaths1795530000000 } from './1795530000000-deaths';
import { PromptLengths1795610000000 } from './1795610000000-prompt-lengths';
import { StorageUse1795640000000 } from './1795640000000-storage-use';
import { RateLeases1795650000000 } from './1795650000000-rate-leases';
import { RepliesOfRecords1795650100000 } from './1795650100000-replies-of-records';
import { RecordsOfOldReplies1795650110000 } from './1795650110000-records-of-old-replies';
import { RepliesByRecord1795650120000 } from './1795650120000-replies-by-record';
import { Redelivery1795660000000 } from './1795660000000-redelivery';
import { ReadinessProbes1795660100000 } from './1795660100000-readiness-probes';
import { ThumbnailClaims1795660200000 } from './1795660200000-thumbnail-claims';
import { OpenSandboxTasks1795670000000 } from './1795670000000-open-sandbox-tasks';
import { NoOpenTasksOfAll1795670010000 } from './1795670010000-no-open-tasks-of-all';
import { InsertTasks1795680000000 } from './1795680000000-insert-tasks';
import { MissingThumbnails1795690000000 } from './1795690000000-missing-thumbnails';
import { NoSourcesOfAll1795690010000 } from './1795690010000-no-sources-of-all';
import { QueuedByModel1795710000000 } from './1795710000000-queued-by-model';
import { ClaimsThatKnow1795710010000 } from './1795710010000-claims-that-know';
import { NoQueuedOfAllModels1795710020000 } from './1795710020000-no-queued-of-all-models';
import { CursorKeys1795720000000 } from './1795720000000-cursor-keys';
import { TasksByTime1795720010000 } from './1795720010000-tasks-by-time';
import { PromptWebhooks1795730000000 } from './1795730000000-prompt-webhooks';
import { DeliveriesOfTasks1795730010000 } from './1795730010000-deliveries-of-tasks';
import { WeightsBase1795740000000 } from './1795740000000-weights-base';
import { KeyOrder1795750000000 } from './1795750000000-key-order';
import { SignInCodes1795760000000 } from './1795760000000-sign-in-codes';
import { WorkerEngines1795770000000 } from './1795770000000-worker-engines';
import { FailedTasks1795770010000 } from './1795770010000-failed-tasks';
import { DeliveriesByTime1795770020000 } from './1795770020000-deliveries-by-time';
import { StylesWithoutControls1795780000000 } from './1795780000000-styles-without-controls';
import { AcceptedScale1795790000000 } from './1795790000000-accepted-scale';
import { BrokenModels1795800000000 } from './1795800000000-broken-models';
import { DueDeliveries1795810000000 } from './1795810000000-due-deliveries';
import { ThumbnailsOfPrompts1795820000000 } from './1795820000000-thumbnails-of-prompts';

/**
 * Every migration in order; append new ones. An index on a table that may be large is made with
 * `createIndexConcurrently`.
 */
export const migrations = [
  Initial1795200000000,
  InferenceWorkers1795300000000,
  Idempotency1795400000000,
  FairQueue1795500000000,
  KeyLimits1795510000000,
  Retention1795520000000,
  Deaths1795530000000,
  PromptLengths1795610000000,
  StorageUse1795640000000,
  RateLeases1795650000000,
  RepliesOfRecords1795650100000,
  RecordsOfOldReplies1795650110000,
  RepliesByRecord1795650120000,
  Redelivery1795660000000,
  ReadinessProbes1795660100000,
  ThumbnailClaims1795660200000,
  OpenSandboxTasks1795670000000,
  NoOpenTasksOfAll1795670010000,
  InsertTasks1795680000000,
  MissingThumbnails1795690000000,
  NoSourcesOfAll1795690010000,
  QueuedByModel1795710000000,
  ClaimsThatKnow1795710010000,
  NoQueuedOfAllModels1795710020000,
  CursorKeys1795720000000,
  TasksByTime1795720010000,
  PromptWebhooks1795730000000,
  DeliveriesOfTasks1795730010000,
  WeightsBase1795740000000,
  KeyOrder1795750000000,
  SignInCodes1795760000000,
  WorkerEngines1795770000000,
  FailedTasks1795770010000,
  DeliveriesByTime1795770020000,
  StylesWithoutControls1795780000000,
  AcceptedScale1795790000000,
  BrokenModels1795800000000,
  DueDeliveries1795810000000,
  ThumbnailsOfPrompts1795820000000,
  RowsAreJobs1795830000000,
];
