import { Image } from '@app/domain';
import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { ImageUrls } from './image-urls';
import { StoredFiles } from './stored-files';

/** What every record that owns an image task needs. */
@Module({
  imports: [TypeOrmModule.forFeature([Image])],
  providers: [ImageUrls, StoredFiles],
  exports: [ImageUrls, StoredFiles],
})
export class RecordsModule {}
