import type { TrainingSettings } from './settings';

/** What a training takes, before it is opened. */
export interface ForeseenBytes {
  /** The model's weights as they are held in memory. */
  weights: number;
  /** What a step holds beside them. */
  step: number;
}

/** Foresees the memory of a training from its graph, of which nothing is loaded. @throws ModelFolderError */
export function foreseenBytes(
  _folder: string,
  _settings: Partial<Pick<TrainingSettings, 'size' | 'batch' | 'rank' | 'layers' | 'form'>> = {},
): Promise<ForeseenBytes> {
  return Promise.reject(new Error('Training is not built yet.'));
}
