import { OutOfMemoryError, StableDiffusionPipeline } from '@app/diffusion';

/**
 * Loads a model on this machine's processor, which calls each of its parts once, and lets it go.
 * @returns undefined, or why it could not be tried, in one sentence: that says nothing about the model
 * @throws ModelFolderError if it cannot be drawn with
 */
export async function tryModel(folder: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    const pipeline = await StableDiffusionPipeline.load(folder, { device: 'cpu', spinUs: 0, signal });
    await pipeline.release();
    return undefined;
  } catch (error) {
    if (error instanceof OutOfMemoryError)
      return 'It was not tried, because this machine has too little memory for it.';
    throw error;
  }
}
