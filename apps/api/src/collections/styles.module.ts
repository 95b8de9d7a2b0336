import { Style } from '@app/domain';
import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { ImagesModule } from '../files/images.module';
import { StorageUseModule } from '../files/storage-use.module';
import { StylesController } from './styles.controller';
import { StylesService } from './styles.service';

/** The Styles of a Collection. */
@Module({
  imports: [TypeOrmModule.forFeature([Style]), ImagesModule, StorageUseModule],
  controllers: [StylesController],
  providers: [StylesService],
})
export class StylesModule {}
