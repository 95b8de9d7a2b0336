import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** A Style that ships with the service. */
interface PublicStyle {
  id: string;
  /** Secret part of other thumbnails' URLs; of a public one everybody may know it. */
  token: string;
  name: string;
  /** Text with `stylePlaceholder`, for any object. */
  template: string;
  negative_prompt: string | null;
  cfg: number;
  steps: number;
  /** What scripts/draw-public-thumbnails.mjs draws with the bundled model. */
  thumbnail: { prompt: string; seed: number };
}

/** A Collection that ships with the service; its Styles are in their order. */
export interface PublicCollection {
  id: string;
  name: string;
  styles: PublicStyle[];
}

/** The public Collections of this release, oldest first. Ids never change; a new one goes at the end. */
export async function readPublicCollections(): Promise<PublicCollection[]> {
  return JSON.parse(await readFile(join(__dirname, 'collections.json'), 'utf8')) as PublicCollection[];
}

/** The PNG of a public Style. */
export function readPublicThumbnail(styleId: string): Promise<Buffer> {
  return readFile(join(__dirname, 'thumbnails', `${styleId}.png`));
}
