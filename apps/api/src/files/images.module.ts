import { Image } from '@app/domain';
import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { ImageUrls } from './image-urls';
import { ImagesController } from './images.controller';
import { ImagesService } from './images.service';

/** Serves pictures and thumbnails, and makes their URLs. */
@Module({
  imports: [TypeOrmModule.forFeature([Image])],
  controllers: [ImagesController],
  providers: [ImagesService, ImageUrls],
  exports: [ImageUrls],
})
export class ImagesModule {}
