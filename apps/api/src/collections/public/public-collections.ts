import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** A Style that is part of the service. It names no guidance and no steps, because they depend on the model. */
interface PublicStyle {
  id: string;
  /** The token in the thumbnail's URL; other thumbnails' tokens are secret, this one is not. */
  token: string;
  name: string;
  /** Text with `stylePlaceholder`, for any object. */
  template: string;
  negative_prompt: string | null;
  /** Inputs of scripts/draw-public-thumbnails.mjs for the bundled model. */
  thumbnail: { prompt: string; seed: number };
}

/** A Collection that is part of the service, with its Styles in order. */
export interface PublicCollection {
  id: string;
  name: string;
  styles: PublicStyle[];
}

/** The public Collections of this release, oldest first. Ids never change; append new ones. */
export async function readPublicCollections(): Promise<PublicCollection[]> {
  return JSON.parse(await readFile(join(__dirname, 'collections.json'), 'utf8')) as PublicCollection[];
}

/** The PNG of a public Style. */
export function readPublicThumbnail(styleId: string): Promise<Buffer> {
  return readFile(join(__dirname, 'thumbnails', `${styleId}.png`));
}
