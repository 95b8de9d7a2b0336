import { Collection } from '@app/domain';
import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { CollectionsController } from './collections.controller';
import { CollectionsService } from './collections.service';
import { PublicCollectionsSeeder } from './public/public-collections.seeder';

/** Collections of Styles: the caller's own and the public ones. */
@Module({
  imports: [TypeOrmModule.forFeature([Collection])],
  controllers: [CollectionsController],
  providers: [CollectionsService, PublicCollectionsSeeder],
})
export class CollectionsModule {}
