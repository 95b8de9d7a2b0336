import { Module } from '@nestjs/common';
import { VerificationController } from './verification.controller';
import { VerificationService } from './verification.service';

/** What pictures say of themselves: marks, credentials, and the record that made them. */
@Module({ controllers: [VerificationController], providers: [VerificationService] })
export class VerificationModule {}
