import type { SchedulerName } from '../schedulers';
import type { RgbImage } from '../tensor/planes';
import type { ControlNet } from '../denoisers/control-net';
import type { AdapterUse } from '../adapters/applied-adapters';
import type { PictureTexts } from '../conditioners/conditioner';

/** One prompt to be drawn once per seed. */
export interface TextToImageRequest extends PictureTexts {
  /** Pixels; multiples of the model's `scaleFactor`. */
  width: number;
  height: number;
  numInferenceSteps: number;
  /** Weight of the prompt against the negative prompt; 1 or less draws without guidance. */
  guidanceScale: number;
  /** One picture each; its noise comes from a generator of its own. */
  seeds: readonly number[];
  /** The model's own if not given. */
  scheduler?: SchedulerName;
  adapters?: readonly AdapterUse[];
  /**
   * A picture to start from, of exactly `width` x `height`: whoever takes one in has cropped and scaled it. Plain data,
   * as everything here but adapters and ControlNets, so that a request can be posted to another thread.
   */
  image?: RgbImage;
  /**
   * Share of the steps that is drawn from `image`, above 0 and at most 1; 0.8 if not given. Of 20 steps 0.3 draws the
   * last 6. Parts of a step are left out, and by models of flow matching drawn (`drawnSteps`). A model of
   * `instruct-pix2pix` takes all steps in any case.
   */
  strength?: number;
  /** The part of `image` that is repainted; needs it, and a model of kind `inpainting` needs both. */
  mask?: Mask;
  /** Of a model that changes pictures: weight of `image` beside that of the prompt; 1.5 if not given, at least 1. */
  imageGuidanceScale?: number;
  /**
   * At most four pictures that the model looks at, if it can: in this order, behind `image`. Their edges are multiples
   * of what the model draws multiples of.
   */
  references?: readonly RgbImage[];
  /** At most three. Their sum is added to what the denoiser passes from its way down to its way up. */
  control?: readonly ControlUse[];
}

/** A mask of exactly the picture's size. */
export interface Mask {
  width: number;
  height: number;
  /**
   * A byte for each pixel, row by row: from 128 on it is repainted, else kept, as in diffusers. In the finished picture
   * a kept pixel is that of `image`, to the byte where this is 0, and a grey mixes both pictures.
   */
  values: Uint8Array;
  /**
   * Whether a position of the latents is repainted where any of its pixels is, as around a picture that stands in a
   * larger one: half of what is around would be kept there. Else those pixels tell that tell it in diffusers.
   */
  byAnyPixel?: boolean;
}

/** A ControlNet, and the map that it follows. */
export interface ControlUse {
  /** Loaded from a folder with `ControlNet.open`; it must be of the model's family. */
  controlNet: ControlNet;
  /** Edges, depths, a pose or what it was trained on, of exactly `width` x `height`. */
  image: RgbImage;
  /** By how much it is followed; 1 is as it was trained. */
  scale: number;
  /** The part of the drawn steps that it guides: all is from 0 to 1. */
  start: number;
  end: number;
}
