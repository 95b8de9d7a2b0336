import { Style } from '@app/domain';
import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { StylesController } from './styles.controller';
import { StylesService } from './styles.service';

/** The Styles of a Collection. */
@Module({
  imports: [TypeOrmModule.forFeature([Style])],
  controllers: [StylesController],
  providers: [StylesService],
})
export class StylesModule {}
