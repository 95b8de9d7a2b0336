import { Style } from '@app/domain';
import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { ImagesModule } from '../images/images.module';
import { PicturesModule } from '../pictures/pictures.module';
import { StorageUseModule } from '../storage-use/storage-use.module';
import { StylesController } from './styles.controller';
import { StylesService } from './styles.service';
import { ThumbnailsService } from './thumbnails.service';
import { ThumbnailsSweeper } from './thumbnails.sweeper';

/** Styles and their thumbnails. */
@Module({
  imports: [TypeOrmModule.forFeature([Style]), ImagesModule, StorageUseModule, PicturesModule],
  controllers: [StylesController],
  providers: [StylesService, ThumbnailsService, ThumbnailsSweeper],
  exports: [StylesService, ThumbnailsService],
})
export class StylesModule {}
