export {
  areTrained,
  attemptFolder,
  attemptOf,
  editsFolder,
  styleThumbnailFolder,
  styleThumbnailsFolder,
  trainedWeightsKey,
  trainingFolder,
  trainingsFolder,
  weightsFolder,
  weightsFolderOf,
} from './attempt-folder';
export { cancelAll } from './cancellation';
export { announce, changeChannel, deliveryChannel, progressChannel, stopChannel } from './channels';
export type { StepMessage } from './channels';
export type { ClaimFilter } from './claims';
export { deathsAfter, fatalCount } from './deaths';
export { costOf, findDrawing } from './drawings';
export { queuePositions } from './fair-queue';
export { forgetReplies } from './forget-replies';
export { devicesFor, LiveWorkers, problemFor, signingOf, workerBeatMs } from './live-workers';
export type { Presence, WorkerAbilities } from './live-workers';
export type { DrawnPicture, Served, Settlement } from './settlement';
export { heartbeatTimeoutMs } from './silence';
export { claimStatement, undrawableAfterMs } from './statements/claim';
export { waitsForWorker } from './statements/queue-heads';
export { collectionRecordBytes, finetuneRecordBytes, styleRecordBytes } from './storage-estimates';
export { removeFinetune, removeTasks } from './removal';
export { StorageFullError, storageColumns, StorageQuota, uploadLifeSql } from './storage-quota';
export type { StorageRow } from './storage-quota';
export { addStored, addStoredOf } from './storage-use';
export type { StoredBytes } from './storage-use';
export type { Audited } from './audit-entries';
export type { NewTask } from './task-intake';
export { countQueued, storageOfAll, TaskIntake } from './task-intake';
export { TaskHold, type TaskStops } from './task-hold';
export { TaskSweep } from './task-sweep';
export { Tasks } from './tasks';
export { Trainings } from './trainings';
export type { NewTraining, Trained, TrainedSteps, WeightsTask } from './trainings';
export { TasksModule } from './tasks.module';
export { dropUploads, useUploads } from './uploads';
export type { NamedPicture, NeededPictures } from './uploads';
export { forgetUserInUsage } from './usage';
export { assignWeights } from './weights';
export type { NewWeights } from './weights';
