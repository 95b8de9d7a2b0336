import type { Family } from './family';
import { stableDiffusion1 } from './stable-diffusion-1';
import { stableDiffusion2 } from './stable-diffusion-2';
import { stableDiffusionXl } from './stable-diffusion-xl';

/** All families. A model is of the first that recognises its files. */
export const families: Family[] = [stableDiffusionXl, stableDiffusion2, stableDiffusion1];
