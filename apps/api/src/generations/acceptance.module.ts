import { PicturesModule } from '@app/pictures';
import { Module } from '@nestjs/common';
import { ModelsModule } from '../models/models.module';
import { type Config, CONFIG } from '@app/config';
import { JsonLogger, Metrics } from '@app/observability';
import { AcceptanceService } from './acceptance.service';
import { ModerationService } from './moderation.service';
import { SentPictures } from './sent-pictures.service';

/** Limits on what a key may have drawn. */
@Module({
  imports: [ModelsModule, PicturesModule],
  providers: [
    AcceptanceService,
    SentPictures,
    {
      provide: ModerationService,
      useFactory: (config: Config, logger: JsonLogger, metrics: Metrics) =>
        ModerationService.open(config, logger, metrics),
      inject: [CONFIG, JsonLogger, Metrics],
    },
  ],
  exports: [AcceptanceService, SentPictures],
})
export class AcceptanceModule {}
