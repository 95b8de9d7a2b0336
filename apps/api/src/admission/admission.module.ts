import { Module } from '@nestjs/common';
import { StorageUseModule } from '../storage-use/storage-use.module';
import { AdmissionService } from './admission.service';

/** Limits on what a key may have drawn. */
@Module({ imports: [StorageUseModule], providers: [AdmissionService], exports: [AdmissionService] })
export class AdmissionModule {}
