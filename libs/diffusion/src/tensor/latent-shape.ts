/** Channels, height and width of one image's latents. */
export type LatentShape = readonly [channels: number, height: number, width: number];
