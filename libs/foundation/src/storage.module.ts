import type { Config } from '@app/config';
import { openImageStorage } from '@app/storage';
import { Global, Module } from '@nestjs/common';
import { CONFIG, IMAGE_STORAGE } from './tokens';

/** The storage of pictures and weights. */
@Global()
@Module({
  providers: [{ provide: IMAGE_STORAGE, inject: [CONFIG], useFactory: (config: Config) => openImageStorage(config) }],
  exports: [IMAGE_STORAGE],
})
export class StorageModule {}
