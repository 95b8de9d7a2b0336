import { Module } from '@nestjs/common';
import { RecordsModule } from '../records/records.module';
import { StylesModule } from '../styles/styles.module';
import { RetentionService } from './retention.service';

/** What has had its time is deleted. */
@Module({ imports: [RecordsModule, StylesModule], providers: [RetentionService] })
export class RetentionModule {}
