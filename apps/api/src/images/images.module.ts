import { Image, Style } from '@app/domain';
import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { ImagesController } from './images.controller';
import { ImagesService } from './images.service';

/** Serves pictures and thumbnails. */
@Module({
  imports: [TypeOrmModule.forFeature([Image, Style])],
  controllers: [ImagesController],
  providers: [ImagesService],
})
export class ImagesModule {}
