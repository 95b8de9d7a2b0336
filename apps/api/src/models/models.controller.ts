import { ModelDto } from '@app/domain/http';
import { Controller, Get } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { ApiReads } from '../docs/operation';
import { ModelsService } from './models.service';

/** The installed models. */
@ApiTags('Models')
@Controller('v1/models')
export class ModelsController {
  constructor(private readonly models: ModelsService) {}

  @Get()
  @ApiReads('listModels', 'List the installed models, by name', {
    reply: ModelDto,
    replyIsArray: true,
    description: 'Installed models that can be drawn with, their own defaults, and the names that they stand in for.',
  })
  findAll(): Promise<ModelDto[]> {
    return this.models.findAll();
  }
}
