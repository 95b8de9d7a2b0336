/**
 * Training of LoRA adapters and textual inversions: `Trainer.open`, then `step` until `done`, `gate` and `weights`.
 * `foreseenBytes` tells what memory that takes.
 */
export { settingsOfCheckpoint } from './checkpoint';
export type { TrainingPicture } from './examples';
export { foreseenBytes, type ForeseenBytes } from './foreseen-bytes';
export { type GateFigures, type GateResult, judge } from './gate';
export { type TrainingForm, type TrainingSettings, trainingSettings } from './settings';
export { assertTrainable } from './trainable';
export { Trainer, type TrainerLoad, type TrainingStep } from './trainer';
export type { TrainingGraph } from './training-graph';
