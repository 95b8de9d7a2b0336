import type { Attempt } from '@app/domain';

/** Not with the pictures: a thumbnail outlives its Prompt as long as a Style made from it is there. */
const thumbnails = 'thumbnails';

/** The folders of an attempt: of its pictures, or of its thumbnail for Styles. All other files have other keys. */
const ofAttempt = new RegExp(`^(?<folder>(?:${thumbnails}/)?(?<id>[\\w-]{24})/(?<attempt>\\d+))/`);

/** Where the storage has the pictures of one attempt. */
export function attemptFolder({ id, attempt }: Attempt): string {
  return `${id}/${attempt}`;
}

/** Where it has the thumbnails for Styles of all attempts at a Prompt. */
export function styleThumbnailsFolder(promptId: string): string {
  return `${thumbnails}/${promptId}`;
}

/** Where it has the thumbnail for Styles of one attempt, a PNG. */
export function styleThumbnailFolder({ id, attempt }: Attempt): string {
  return `${styleThumbnailsFolder(id)}/${attempt}`;
}

/** The attempt to which a file belongs, and its folder; undefined for other files. */
export function attemptOf(key: string): { id: string; attempt: number; folder: string } | undefined {
  const { id, attempt, folder } = ofAttempt.exec(key)?.groups ?? {};
  return id === undefined ? undefined : { id, attempt: Number(attempt), folder };
}

/** Prefix of the weights of Fine-Tunes. */
export const weightsFolder = 'weights';

/** Where the storage has the weights of one Fine-Tune. */
export function weightsFolderOf(finetuneId: string): string {
  return `${weightsFolder}/${finetuneId}`;
}

/**
 * Where it has the weights that an attempt at a training has made. The form of the key may never change: it is the only
 * record of what was trained here, which `areTrained` reads.
 */
export const trainedWeightsKey = ({ id, attempt }: Attempt, hash: string): string =>
  `${weightsFolderOf(id)}/${attempt}-${hash}.safetensors`;

/** Whether the weights with this key were trained here: those that were sent have an id, which is longer. */
export const areTrained = (key: string): boolean => /\/\d{1,10}-[0-9a-f]+\.safetensors$/.test(key);

/** Prefix of what trainings need as long as they last. */
export const trainingsFolder = 'trainings';

/** Where the storage has what one training needs. */
export function trainingFolder(finetuneId: string): string {
  return `${trainingsFolder}/${finetuneId}`;
}

/** Where the storage has pictures that came with an edit: uploads that are deleted with its Generation. */
export const editsFolder = 'uploads/edits';
