import { Module } from '@nestjs/common';
import { DiskSpace } from './disk-space';
import { StorageQuota } from './storage-quota';
import { StorageUseSweeper } from './storage-use.sweeper';
import { StoredFiles } from './stored-files';
import { UploadsService } from './uploads.service';

/** What keys have stored and may store, its removal, and the disk below. */
@Module({
  providers: [DiskSpace, StorageQuota, StorageUseSweeper, StoredFiles, UploadsService],
  exports: [DiskSpace, StorageQuota, StoredFiles, UploadsService],
})
export class StorageUseModule {}
