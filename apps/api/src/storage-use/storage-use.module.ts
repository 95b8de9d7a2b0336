import { Module } from '@nestjs/common';
import { DiskSpace } from './disk-space';
import { StorageQuota } from './storage-quota';
import { StorageUseSweeper } from './storage-use.sweeper';
import { UploadsService } from './uploads.service';

/** What keys have stored and may store, and the disk below. */
@Module({
  providers: [DiskSpace, StorageQuota, StorageUseSweeper, UploadsService],
  exports: [DiskSpace, StorageQuota, UploadsService],
})
export class StorageUseModule {}
