import { ImageTask } from '@app/domain';
import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Terminations } from './terminations';

/** Answers that wait for pictures. */
@Module({
  imports: [TypeOrmModule.forFeature([ImageTask])],
  providers: [Terminations],
  exports: [Terminations],
})
export class WaitingModule {}
