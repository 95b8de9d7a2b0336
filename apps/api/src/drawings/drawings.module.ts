import { Module } from '@nestjs/common';
import { DrawingsController } from './drawings.controller';
import { DrawingsService } from './drawings.service';

/** The list of everything that is drawn. */
@Module({ controllers: [DrawingsController], providers: [DrawingsService] })
export class DrawingsModule {}
