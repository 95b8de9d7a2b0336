import { Image } from '@app/domain';
import { Global, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { DiskSpace } from './disk-space';
import { ImageUrls } from './image-urls';
import { ImagesController } from './images.controller';
import { ImagesService } from './images.service';
import { PageFiles } from './page-files';
import { PageController } from './page.controller';
import { RetentionService } from './retention.service';
import { SignIn } from './sign-in';
import { StorageUseSweeper } from './storage-use.sweeper';
import { StoredFiles } from './stored-files';
import { UploadsService } from './uploads.service';

/** Pictures, thumbnails and the files of the page; how much each key stores, and what is deleted after its time. */
@Global()
@Module({
  imports: [TypeOrmModule.forFeature([Image])],
  controllers: [ImagesController, PageController],
  providers: [
    DiskSpace,
    ImagesService,
    ImageUrls,
    PageFiles,
    RetentionService,
    SignIn,
    StorageUseSweeper,
    StoredFiles,
    UploadsService,
  ],
  exports: [DiskSpace, ImageUrls, StoredFiles, UploadsService],
})
export class FilesModule {}
