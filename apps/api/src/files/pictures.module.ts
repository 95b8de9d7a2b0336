import { Module } from '@nestjs/common';
import { PicturesService } from './pictures.service';

/** The process that draws, decodes and encodes pictures. */
@Module({ providers: [PicturesService], exports: [PicturesService] })
export class PicturesModule {}
