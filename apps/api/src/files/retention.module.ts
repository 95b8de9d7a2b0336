import { Module } from '@nestjs/common';
import { StorageUseModule } from './storage-use.module';
import { RetentionService } from './retention.service';

/** Deletes records after their key's retention. */
@Module({ imports: [StorageUseModule], providers: [RetentionService] })
export class RetentionModule {}
