import { aspectRatios, sizeOf } from '@app/domain';

/**
 * Compute seconds of one step of a square picture on a typical GPU. The task's real cost replaces the
 * estimate when it ends.
 */
const secondsPerStep = 0.05;
/** Cost of the text encoder and the decoder, and of enlarging to high resolution, in steps. */
const fixedSteps = 4;
const enlargingSteps = 60;
/**
 * Cost of each chunk of the prompt after the first: per step, and of its encoding, as fractions of a step; measured
 * with the bundled model.
 */
const stepShareOfChunk = 0.05;
const stepsPerChunk = 0.03;

const areaOf = (ratio: (typeof aspectRatios)[number]): number => sizeOf[ratio].width * sizeOf[ratio].height;
const relativeArea = aspectRatios.map((ratio) => `WHEN '${ratio}' THEN ${areaOf(ratio) / areaOf('square')}`).join(' ');

/** Number of chunks after the first, in SQL. */
const moreChunks = `(coalesce(task.prompt_chunks, 1) - 1)`;

/** Estimated compute seconds of a row of `image_tasks`, in SQL. */
export const taskCost = `${secondsPerStep} * (${stepsPerChunk} * ${moreChunks}
  + task.num_images * CASE task.aspect_ratio ${relativeArea} ELSE 1 END
  * (task.steps * (1 + ${stepShareOfChunk} * ${moreChunks}) + ${fixedSteps}
    + CASE WHEN task.high_resolution THEN ${enlargingSteps} ELSE 0 END))`;
