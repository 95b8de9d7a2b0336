/**
 * What to do about a model that is refused, a sentence each: the last one of every refusal. docs/models.md explains
 * them, and a test finds one that it lacks.
 */
export const cures = {
  /** Files are missing, damaged or cut short. */
  installAgain: 'Install it again, from a whole copy or from a new export.',
  /** Git LFS keeps the file elsewhere. */
  getFile: 'Get the file itself, with "git lfs pull" for example.',
  allowReading: 'Let the user that the service runs as read it.',
  /** A JSON file is damaged or has a wrong value. */
  correct: 'Correct this file, or take it from the source of the model again.',
  /** The same of a file that is optional. */
  correctOrRemove: 'Correct this file, or remove it: it is optional.',
  /** Two files do not belong together. */
  oneExport: 'Take all files from one export of one model.',
  /** A graph draws in a way that nothing here knows. */
  otherModel: 'Install a model that draws from text, of Stable Diffusion 1.x or 2.x.',
  /** A graph of the right model has a form that cannot be used. */
  exportAgain: 'Export it again with "optimum-cli export onnx".',
  olderOpset: 'Export it again for an earlier opset, with "--opset 18" for example.',
  olderOnnx: 'Export it again with an older version of the package onnx.',
  needsCuda: 'Draw with DEVICE=cuda:0 on an NVIDIA GPU, or install an export that is not fused.',
  needsFloat32: 'Install an export in float32, or set DEVICE=cpu.',
  /** Weights are damaged, or too large for float16. */
  otherWeights: 'Install a whole copy of it, or an export in float32.',
  /** A folder holds far more than a model. */
  removeOthers: 'Take out of it what does not belong to the model.',
  renameGraph: 'Name the one to draw with model.onnx.',
} as const;

/** One of {@link cures}. */
export type Cure = (typeof cures)[keyof typeof cures];
