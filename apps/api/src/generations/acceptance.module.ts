import { Module } from '@nestjs/common';
import { ModelsModule } from '../models/models.module';
import { AcceptanceService } from './acceptance.service';

/** Limits on what a key may have drawn. */
@Module({ imports: [ModelsModule], providers: [AcceptanceService], exports: [AcceptanceService] })
export class AcceptanceModule {}
