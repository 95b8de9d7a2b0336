import { ImageTask } from '@app/domain';
import { BullModule } from '@nestjs/bullmq';
import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { PicturesModule } from '../files/pictures.module';
import { StepPublisher } from './step-publisher';
import { SandboxProcessor } from './sandbox.processor';
import { SandboxService } from './sandbox.service';
import { SandboxSweeper } from './sandbox.sweeper';

/** Tasks of sandbox keys: marked pictures, failures and delays on request. */
@Module({
  imports: [
    TypeOrmModule.forFeature([ImageTask]),
    PicturesModule,
    // Only for the processor, without a queue of its own: jobs are added in transactions.
    BullModule.registerQueue(),
  ],
  providers: [SandboxService, StepPublisher, SandboxProcessor, SandboxSweeper],
})
export class SandboxModule {}
