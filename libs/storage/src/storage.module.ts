import 'reflect-metadata';
import { type Config, CONFIG } from '@app/config';
import { Global, Module } from '@nestjs/common';
import { join } from 'node:path';
import { FileImageStorage } from './file-image-storage';
import type { ImageStorage } from './image-storage';
import { S3ImageStorage } from './s3-image-storage';

/** Injects the storage of pictures. */
export const IMAGE_STORAGE = Symbol('IMAGE_STORAGE');

/** Opens the storage that the configuration names. */
export function openImageStorage({ s3, dataDir }: Pick<Config, 'storage' | 's3' | 'dataDir'>): ImageStorage {
  return s3 ? new S3ImageStorage(s3, join(dataDir, 'cache', 's3')) : new FileImageStorage(join(dataDir, 'images'));
}

/** The storage of pictures and weights. */
@Global()
@Module({
  providers: [{ provide: IMAGE_STORAGE, inject: [CONFIG], useFactory: (config: Config) => openImageStorage(config) }],
  exports: [IMAGE_STORAGE],
})
export class StorageModule {}
