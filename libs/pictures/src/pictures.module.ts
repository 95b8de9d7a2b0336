import { Module } from '@nestjs/common';
import { PictureDecoder } from './picture-decoder';
import { PictureReader } from './picture-reader';

/** Pictures that callers send or name. It needs the configuration, the storage and the database of its process. */
@Module({ providers: [PictureDecoder, PictureReader], exports: [PictureDecoder, PictureReader] })
export class PicturesModule {}
