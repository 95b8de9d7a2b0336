/** Rules of the service that the page knows without asking; `service-rules.spec.ts` compares them with the service. */

/** The largest seed; seeds wrap around after it. */
export const largestSeed = 2 ** 32 - 1;

/** The seed of picture i of a drawing. */
export const seedOf = ({ seed }: { seed: number }, index: number): number => (seed + index) % (largestSeed + 1);

/** Most characters of texts; a negative prompt has as many as a prompt. */
export const lengths = { prompt: 32_000, name: 200, token: 64, url: 2048 };

/** Bounds of a request. */
export const bounds = { steps: { min: 1, max: 50 }, cfg: { min: 1, max: 20 }, numGenerations: { min: 1, max: 8 } };

/** Pictures to ask for again: OpenAI's routes draw more at once. */
export const askable = (pictures: number): number => Math.min(pictures, bounds.numGenerations.max);

/** Pixels of an edge that a request may ask for. */
export const edgeBounds = { min: 256, max: 2048 };

/** Names whose pictures have the sizes of the specification, whichever model draws them, and their square's edge. */
export const specified = { names: ['sd1.5', 'sd2.1'], edge: 512 };

/** The service's own values where a model has none. */
export const serviceDefaults = { cfg: 7.5, steps: 30, strength: 0.8, outpaintStrength: 1 };
