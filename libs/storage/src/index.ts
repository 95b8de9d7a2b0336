export { FileImageStorage } from './file-image-storage';
export type { ImageStorage, StoredObject } from './image-storage';
export { S3ImageStorage } from './s3-image-storage';
export { StorageUnavailableError } from './storage-unavailable-error';
export { openImageStorage } from './open-image-storage';
export { IMAGE_STORAGE, StorageModule } from './storage.module';
