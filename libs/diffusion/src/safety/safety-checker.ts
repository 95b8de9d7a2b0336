import { type ClipVisionConfig, safetyCheckerModel, visionEdge } from '../architectures/clip-vision-model';
import { cures, ModelFolderError } from '../errors';
import type { GraphSession, LoadOptions } from '../sessions/model-session';
import { openPart, type PartFiles } from '../sessions/part-graph';
import { tried } from '../sessions/tried';
import { float32, floatsOf } from '../sessions/tensor';
import { areFinite, notFinite, type RgbImage } from '../tensor/planes';
import { resampled } from '../tensor/resampled';

/** A safety checker before it is loaded. */
export interface SafetyFiles extends PartFiles {
  config: ClipVisionConfig;
}

/** How near a picture is to each concept, less that concept's threshold: above 0 it is found. */
export interface SafetyScores {
  /** Those that lower the thresholds of the others. */
  special: Float32Array;
  concepts: Float32Array;
}

/** Mean and deviation of red, green and blue in the pictures that CLIP was trained on. */
const means = [0.48145466, 0.4578275, 0.40821073];
const deviations = [0.26862954, 0.26130258, 0.27577711];

/** By how much a special concept lowers the thresholds after it. */
const adjustment = 0.01;

/** A loaded safety checker of Stable Diffusion: says of pictures whether they are fit for everybody to see. */
export class SafetyChecker {
  private constructor(private readonly session: GraphSession) {}

  /** @throws ModelFolderError, OutOfMemoryError as `ModelSession.open` does */
  static async open(files: SafetyFiles, options: LoadOptions): Promise<SafetyChecker> {
    const build = (own: Parameters<typeof safetyCheckerModel>[0]) => safetyCheckerModel(own, files.config);
    // In half precision scores differ by more than their thresholds are told with.
    const session = await openPart(files, build, options, { onCuda: 'float32', isAdapted: false });
    return new SafetyChecker(session);
  }

  /** Loads it, calls it once, and lets it go. @throws ModelFolderError if it cannot be used */
  static async tryOut(files: SafetyFiles, options: LoadOptions): Promise<void> {
    const checker = await SafetyChecker.open(files, options);
    try {
      const blank = { width: visionEdge, height: visionEdge, data: new Uint8Array(3 * visionEdge ** 2) };
      const { special, concepts } = await tried(files.file, () => checker.scores(blank));
      if (![special, concepts].every(areFinite)) throw new ModelFolderError(files.file, notFinite, cures.otherWeights);
    } finally {
      await checker.release();
    }
  }

  async scores(picture: RgbImage): Promise<SafetyScores> {
    const pixels = float32(visionPixels(picture), [1, 3, visionEdge, visionEdge]);
    const scores = await this.session.run({ pixel_values: pixels });
    return { special: floatsOf(scores.special_scores), concepts: floatsOf(scores.concept_scores) };
  }

  /** Whether a picture is one to flag. */
  async flags(picture: RgbImage): Promise<boolean> {
    return isFlagged(await this.scores(picture));
  }

  release(): Promise<void> {
    return this.session.release();
  }
}

/** Whether scores are those of a picture to flag. Source: diffusers' `safety_checker.py`, which rounds to 3 digits. */
export function isFlagged({ special, concepts }: SafetyScores): boolean {
  const isFound = (score: number): boolean => Number(score.toFixed(3)) > 0;
  const lowered = special.some(isFound) ? adjustment : 0;
  return concepts.some((score) => isFound(score + lowered));
}

/** The values of a picture that CLIP looks at: its short edge is scaled, and the middle is taken. */
export function visionPixels({ width, height, data }: RgbImage): Float32Array {
  const short = Math.min(width, height);
  const scaled = (edge: number): number => Math.trunc((visionEdge * edge) / short);
  const small = resampled({ width, height, data }, { width: scaled(width), height: scaled(height) });
  const [left, top] = [small.width, small.height].map((edge) => Math.floor((edge - visionEdge) / 2));
  const planes = new Float32Array(3 * visionEdge ** 2);
  for (let colour = 0; colour < 3; colour++)
    for (let y = 0; y < visionEdge; y++)
      for (let x = 0; x < visionEdge; x++) {
        const value = small.data[((y + top) * small.width + x + left) * 3 + colour] / 255;
        planes[(colour * visionEdge + y) * visionEdge + x] = (value - means[colour]) / deviations[colour];
      }
  return planes;
}
