import { Module } from '@nestjs/common';
import { ModelsService } from './models.service';

/** Installed models. */
@Module({ providers: [ModelsService], exports: [ModelsService] })
export class ModelsModule {}
