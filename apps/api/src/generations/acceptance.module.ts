import { PicturesModule } from '@app/pictures';
import { Module } from '@nestjs/common';
import { ModelsModule } from '../models/models.module';
import { AcceptanceService } from './acceptance.service';
import { SentPictures } from './sent-pictures.service';

/** Limits on what a key may have drawn. */
@Module({
  imports: [ModelsModule, PicturesModule],
  providers: [AcceptanceService, SentPictures],
  exports: [AcceptanceService, SentPictures],
})
export class AcceptanceModule {}
