import { Module } from '@nestjs/common';
import { StorageUseModule } from '../storage-use/storage-use.module';
import { StylesModule } from '../styles/styles.module';
import { RetentionService } from './retention.service';

/** What has had its time is deleted. */
@Module({ imports: [StorageUseModule, StylesModule], providers: [RetentionService] })
export class RetentionModule {}
