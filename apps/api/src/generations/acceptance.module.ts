import { Module } from '@nestjs/common';
import { AcceptanceService } from './acceptance.service';

/** Limits on what a key may have drawn. */
@Module({ providers: [AcceptanceService], exports: [AcceptanceService] })
export class AcceptanceModule {}
