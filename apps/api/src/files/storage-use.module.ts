import { Module } from '@nestjs/common';
import { DiskSpace } from './disk-space';
import { StorageQuota } from '../http/storage-quota';
import { StorageUseSweeper } from './storage-use.sweeper';
import { StoredFiles } from './stored-files';
import { UploadsService } from './uploads.service';

/** The storage use and limits of keys, the removal of files, and the free disk space. */
@Module({
  providers: [DiskSpace, StorageQuota, StorageUseSweeper, StoredFiles, UploadsService],
  exports: [DiskSpace, StorageQuota, StoredFiles, UploadsService],
})
export class StorageUseModule {}
