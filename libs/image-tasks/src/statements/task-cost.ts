import { aspectRatios, sizeOf } from '@app/domain';

/** Compute seconds of one step of a square picture on a usual GPU. What a task really took replaces the estimate when it ends. */
const secondsPerStep = 0.05;
/** What the text encoder and the decoder take, and the enlarging to high resolution, in steps. */
const fixedSteps = 4;
const enlargingSteps = 60;
/** What each chunk of the prompt after the first adds to a step, and what its encoding takes, as parts of a step; measured with the bundled model. */
const stepShareOfChunk = 0.05;
const stepsPerChunk = 0.03;

const areaOf = (ratio: (typeof aspectRatios)[number]): number => sizeOf[ratio].width * sizeOf[ratio].height;
const relativeArea = aspectRatios.map((ratio) => `WHEN '${ratio}' THEN ${areaOf(ratio) / areaOf('square')}`).join(' ');

/** Chunks of the prompt after its first, in SQL. */
const moreChunks = `(coalesce(task.prompt_chunks, 1) - 1)`;

/** Estimated compute seconds of a row of `image_tasks`, in SQL. */
export const taskCost = `${secondsPerStep} * (${stepsPerChunk} * ${moreChunks}
  + task.num_images * CASE task.aspect_ratio ${relativeArea} ELSE 1 END
  * (task.steps * (1 + ${stepShareOfChunk} * ${moreChunks}) + ${fixedSteps}
    + CASE WHEN task.high_resolution THEN ${enlargingSteps} ELSE 0 END))`;
