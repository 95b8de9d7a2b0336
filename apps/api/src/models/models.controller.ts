import { ModelDto, OpenaiModelDto, OpenaiModelsDto } from '@app/domain/http';
import { Controller, Get, Param, Req } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { Request } from 'express';
import { ApiReads } from '../docs/operation';
import { isOpenaiClient } from '../http/problem.filter';
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
    description:
      'Installed models that can be drawn with, their own defaults, and the names that they stand in for. OpenAI\'s own clients, which name themselves by `X-Stainless-Lang` or `User-Agent`, get `{object: "list", data}` of what can be drawn with, each as `GET /v1/models/{name}` answers.',
  })
  findAll(@Req() request: Request): Promise<ModelDto[] | OpenaiModelsDto> {
    return isOpenaiClient(request) ? this.models.findAllForOpenai() : this.models.findAll();
  }

  @Get(':name')
  @ApiReads('getModel', 'Read an installed model', {
    reply: OpenaiModelDto,
    errors: [404],
    description: "By its name, or by one of `MODEL_ALIASES`; with the fields of OpenAI's API beside ours.",
  })
  findOne(@Param('name') name: string): Promise<OpenaiModelDto> {
    return this.models.findOne(name);
  }
}
