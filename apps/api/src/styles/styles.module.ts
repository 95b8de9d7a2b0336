import { Collection, Style } from '@app/domain';
import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { CollectionsRepository } from '../collections/collections.repository';
import { PicturesModule } from '../pictures/pictures.module';
import { RecordsModule } from '../records/records.module';
import { StylesController } from './styles.controller';
import { StylesService } from './styles.service';
import { ThumbnailsService } from './thumbnails.service';
import { ThumbnailsSweeper } from './thumbnails.sweeper';

/** Styles and their thumbnails. */
@Module({
  imports: [TypeOrmModule.forFeature([Collection, Style]), RecordsModule, PicturesModule],
  controllers: [StylesController],
  providers: [CollectionsRepository, StylesService, ThumbnailsService, ThumbnailsSweeper],
  exports: [CollectionsRepository, StylesService, ThumbnailsService],
})
export class StylesModule {}
