import type { Family } from './family';
import { ernieImage } from './ernie-image';
import { flux2 } from './flux2';
import { stableDiffusion1 } from './stable-diffusion-1';
import { stableDiffusion2 } from './stable-diffusion-2';
import { stableDiffusionXl } from './stable-diffusion-xl';
import { zImage } from './z-image';

/** All families. A model is of the first that recognises its files. */
export const families: Family[] = [flux2, zImage, ernieImage, stableDiffusionXl, stableDiffusion2, stableDiffusion1];
