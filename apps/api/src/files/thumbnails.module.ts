import { Module } from '@nestjs/common';
import { PicturesModule } from './pictures.module';
import { ThumbnailsListener } from './thumbnails.listener';
import { ThumbnailsService } from './thumbnails.service';
import { ThumbnailsSweeper } from './thumbnails.sweeper';

/** Thumbnails of Styles, made from the pictures of Prompts. */
@Module({
  imports: [PicturesModule],
  providers: [ThumbnailsService, ThumbnailsListener, ThumbnailsSweeper],
  exports: [ThumbnailsService],
})
export class ThumbnailsModule {}
