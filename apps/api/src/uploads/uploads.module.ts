import { PicturesModule } from '@app/pictures';
import { Module } from '@nestjs/common';
import { UploadedPicturesService } from './uploaded-pictures.service';
import { UploadedPicturesSweeper } from './uploaded-pictures.sweeper';
import { UploadsController } from './uploads.controller';

/** Pictures that callers send, to draw from or to train on. */
@Module({
  imports: [PicturesModule],
  controllers: [UploadsController],
  providers: [UploadedPicturesService, UploadedPicturesSweeper],
  exports: [UploadedPicturesService],
})
export class UploadsModule {}
