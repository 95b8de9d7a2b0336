import { Image } from '@app/domain';
import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { ImageUrls } from './image-urls';
import { Lists } from './lists';
import { StoredFiles } from './stored-files';

/** What every record that owns an image task needs. */
@Module({
  imports: [TypeOrmModule.forFeature([Image])],
  providers: [ImageUrls, Lists, StoredFiles],
  exports: [ImageUrls, Lists, StoredFiles],
})
export class RecordsModule {}
