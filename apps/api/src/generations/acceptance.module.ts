import { Module } from '@nestjs/common';
import { StorageUseModule } from '../files/storage-use.module';
import { AcceptanceService } from './acceptance.service';

/** Limits on what a key may have drawn. */
@Module({ imports: [StorageUseModule], providers: [AcceptanceService], exports: [AcceptanceService] })
export class AcceptanceModule {}
