export { dataDisks, type DiskRoom } from './disk-room';
export { FileImageStorage } from './file-image-storage';
export { StorageUnavailableError } from './image-storage';
export type { ByteRange, ImageStorage, StoredObject } from './image-storage';
export { PresignedUrls } from './presigned-urls';
export { S3ImageStorage } from './s3-image-storage';
export { IMAGE_STORAGE, openImageStorage, StorageModule } from './storage.module';
