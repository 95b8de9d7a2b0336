import { Generation } from '@app/domain';
import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AcceptanceModule } from './acceptance.module';
import { ImagesModule } from '../files/images.module';
import { ModelsModule } from '../models/models.module';
import { StorageUseModule } from '../files/storage-use.module';
import { GenerationsReader } from './generations.reader';
import { TextToImageController } from './text-to-image.controller';
import { GenerationsService } from './generations.service';

/** Generations: pictures from a prompt. */
@Module({
  imports: [TypeOrmModule.forFeature([Generation]), ImagesModule, StorageUseModule, ModelsModule, AcceptanceModule],
  controllers: [TextToImageController],
  providers: [GenerationsService, GenerationsReader],
  exports: [GenerationsService],
})
export class TextToImageModule {}
