import { Task } from '@app/domain';
import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { DrawingsController } from './drawings.controller';
import { DrawingsService } from './drawings.service';

/** The list of everything that is drawn. */
@Module({
  imports: [TypeOrmModule.forFeature([Task])],
  controllers: [DrawingsController],
  providers: [DrawingsService],
})
export class DrawingsModule {}
