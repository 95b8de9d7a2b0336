import { Baseline1796000000000 } from './1796000000000-baseline';
import { UploadedPictures1796000100000 } from './1796000100000-uploaded-pictures';
import { DrawingInputs1796112622000 } from './1796112622000-drawing-inputs';
import {
  TasksQueueIndex1796223100000,
  TasksQueueIndexRenamed1796223200000,
  Trainings1796223000000,
} from './1796223000000-trainings';
import { KeepTrainingUploads1796224000000 } from './1796224000000-keep-training-uploads';
import { OldestBuild1796225000000 } from './1796225000000-oldest-build';
import { StorageOfRecords1796230000000 } from './1796230000000-storage-of-records';
import { Thumbnails1796240000000 } from './1796240000000-thumbnails';
import { WebhookBodies1796250000000 } from './1796250000000-webhook-bodies';
import { UnansweredIndex1796260000000 } from './1796260000000-unanswered-index';
import {
  AccountIndexes1796270200000,
  Accounts1796270000000,
  AccountsOfRecords1796270100000,
} from './1796270000000-accounts';
import { DetailedUsage1796280000000 } from './1796280000000-detailed-usage';
import { AskedSizes1796290000000 } from './1796290000000-asked-sizes';
import { FetchedWeights1796320000000 } from './1796320000000-fetched-weights';
import { CredentialsOfWorkers1796330000000 } from './1796330000000-credentials-of-workers';
import { ContentFilter1796340000000 } from './1796340000000-content-filter';
import { AuditEntries1796350000000 } from './1796350000000-audit-entries';
import { FlaggedBy1796360000002 } from './1796360000002-flagged-by';
import { UsersOfOlderStyles1796370100004, UsersOfStyles1796370000004 } from './1796370000004-users-of-styles';

/**
 * Every migration in order; append new ones. An index on a table that may be large is made with
 * `createIndexConcurrently`.
 */
export const migrations = [
  Baseline1796000000000,
  UploadedPictures1796000100000,
  DrawingInputs1796112622000,
  Trainings1796223000000,
  TasksQueueIndex1796223100000,
  TasksQueueIndexRenamed1796223200000,
  KeepTrainingUploads1796224000000,
  OldestBuild1796225000000,
  StorageOfRecords1796230000000,
  Thumbnails1796240000000,
  WebhookBodies1796250000000,
  UnansweredIndex1796260000000,
  Accounts1796270000000,
  AccountsOfRecords1796270100000,
  AccountIndexes1796270200000,
  DetailedUsage1796280000000,
  AskedSizes1796290000000,
  FetchedWeights1796320000000,
  CredentialsOfWorkers1796330000000,
  ContentFilter1796340000000,
  AuditEntries1796350000000,
  FlaggedBy1796360000002,
  UsersOfStyles1796370000004,
  UsersOfOlderStyles1796370100004,
];
