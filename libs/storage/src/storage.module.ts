import 'reflect-metadata';
import type { Config } from '@app/config';
import { CONFIG } from '@app/config';
import { Global, Module } from '@nestjs/common';
import { openImageStorage } from './open-image-storage';

/** Injects the storage of pictures. */
export const IMAGE_STORAGE = Symbol('IMAGE_STORAGE');

/** The storage of pictures and weights. */
@Global()
@Module({
  providers: [{ provide: IMAGE_STORAGE, inject: [CONFIG], useFactory: (config: Config) => openImageStorage(config) }],
  exports: [IMAGE_STORAGE],
})
export class StorageModule {}
