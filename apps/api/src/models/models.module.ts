import type { Config } from '@app/config';
import { ModelStore } from '@app/model-store';
import { LiveWorkers } from '@app/queue';
import { Module } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { CONFIG } from '../config.token';
import { ModelsController } from './models.controller';
import { ModelsService } from './models.service';

/** Installed models, and the workers that draw with them. */
@Module({
  controllers: [ModelsController],
  providers: [
    ModelsService,
    { provide: ModelStore, inject: [CONFIG], useFactory: (config: Config) => new ModelStore(config.modelsDir) },
    {
      provide: LiveWorkers,
      inject: [DataSource],
      useFactory: (dataSource: DataSource) => new LiveWorkers(dataSource),
    },
  ],
  exports: [ModelsService],
})
export class ModelsModule {}
