import { join } from 'node:path';
import type { Config } from '@app/config';
import { FileImageStorage } from './file-image-storage';
import type { ImageStorage } from './image-storage';
import { S3ImageStorage } from './s3-image-storage';

/** Opens the storage that the configuration names. */
export function openImageStorage({ s3, dataDir }: Pick<Config, 'storage' | 's3' | 'dataDir'>): ImageStorage {
  return s3 ? new S3ImageStorage(s3, join(dataDir, 'cache', 's3')) : new FileImageStorage(join(dataDir, 'images'));
}
