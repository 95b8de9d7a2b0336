import { Module } from '@nestjs/common';
import { AdmissionService } from './admission.service';

/** What a key may have drawn. */
@Module({ providers: [AdmissionService], exports: [AdmissionService] })
export class AdmissionModule {}
