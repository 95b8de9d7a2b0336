/** Limits of request fields, from the API contract. */
export const limits = {
  bodyBytes: 1_000_000,
  promptLength: 32_000,
  /** Combining marks in a row, as in Unicode's Stream-Safe Text Format: NFC takes the square of their number. */
  marksInARow: 30,
  nameLength: 200,
  userLength: 256,
  arrayLength: 100,
  metadataBytes: 16 * 1024,
  metadataDepth: 8,
  webhookLength: 2048,
  seed: 4_294_967_295,
  cfg: { min: 1, max: 20 },
  steps: { min: 1, max: 50 },
  numGenerations: { min: 1, max: 8 },
  /** In the shape of OpenAI's API. */
  openai: { user: 256, images: { min: 1, max: 10 }, partialImages: { min: 0, max: 3 } },
  compression: { min: 0, max: 100 },
  tokenLength: 64,
  modelNameLength: 64,
  /** Pictures of the object for a Fine-Tune's training; `ms`: within which all of them are read. */
  trainingImages: { min: 4, max: 100, ms: 300_000 },
  /** Shorter edge of each, in pixels. */
  trainingImageEdge: 64,
  trainingSteps: { min: 50, max: 5000 },
  weightsBytes: 2 ** 30,
  /** A picture that is drawn from or trained on. */
  sentPicture: { bytes: 20e6, pixels: 50e6, edge: 16_384, ratio: 100 },
  weightsScale: { min: 0, max: 2 },
  usedFinetunes: 4,
  strength: { min: 0.01, max: 1 },
  /** Pixels of a picture's width or height. */
  pictureEdge: { min: 256, max: 2048 },
  usedControls: 3,
  usedReferences: 4,
  controlScale: { min: 0, max: 2 },
  controlSpan: { min: 0, max: 1 },
  /** Prompts that one request to apply Styles may make. */
  appliedPrompts: 1000,
  /** Texts of all these Prompts together, in characters. */
  appliedTexts: 1_000_000,
  /** Metadata of all these Prompts together, in bytes of JSON. */
  appliedMetadata: 1_000_000,
  page: { min: 1, max: 100 },
  /** Attempts of a webhook delivery that its log shows. */
  shownAttempts: 100,
} as const;

/** Defaults of omitted controls, from the API contract. */
export const defaults = {
  cfg: 7.5,
  steps: 30,
  aspectRatio: 'square',
  highResolution: false,
  outputFormat: 'png',
  promptWeighting: false,
  numGenerations: 1,
  model: 'sd1.5',
  token: 'zwx',
  weightsScale: 1,
  strength: 0.8,
  /** Around a picture there is nothing to begin from. */
  outpaintStrength: 1,
  control: { scale: 1, start: 0, end: 1 },
} as const;

/** Steps of a training where neither the request nor the model says how many: so many a picture, within bounds. */
export const defaultTrainingSteps = (images: number): number => Math.min(3000, Math.max(500, 100 * images));
