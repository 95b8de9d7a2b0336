import { join } from 'node:path';
import type { Config } from '@app/config';
import { FileImageStorage } from './file-image-storage';
import type { ImageStorage } from './image-storage';

export { FileImageStorage } from './file-image-storage';
export type { ImageStorage, StoredObject } from './image-storage';

/** Opens the storage that the configuration names. */
export function openImageStorage(config: Pick<Config, 'storage' | 'dataDir'>): ImageStorage {
  return new FileImageStorage(join(config.dataDir, 'images'));
}
