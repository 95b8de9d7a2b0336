import { limits } from '@app/domain';
import {
  CreateFinetuneDto,
  CreateGenerationDto,
  DeletedDto,
  FinetuneDto,
  FinetuneQueryDto,
  GenerationDto,
  RegisteredFinetuneDto,
  UpdateFinetuneDto,
} from '@app/domain/http';
import { Controller, Delete, Get, Param, Patch, Post, Put, Res } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import { Caller, type CallerKey, AccountId } from '../http/caller.decorator';
import {
  ApiChanges,
  ApiCreates,
  ApiDownloads,
  ApiFinds,
  ApiLists,
  ApiPrefersWait,
  ApiRemoves,
  ApiUploads,
} from '../docs/operation';
import { AnswersWhenDone, LocatedAt, TakesFile, Weighs } from '../http/route.decorators';
import { ValidBody } from '../http/body';
import { FileBody } from '../http/file-body';
import type { SentFile } from '../http/receive-file';
import { SendsList } from '../http/list.interceptor';
import { ValidQuery } from '../http/query';
import type { List } from '../http/list';
import { GenerationsService } from '../generations/generations.service';
import { FinetuneOrGenerationBody } from './finetune-body';
import { FinetuneWeightsService } from './finetune-weights.service';
import { FinetunesService } from './finetunes.service';
import { SendsFile, type StoredFile } from './file.interceptor';
import { TrainingsService } from './trainings.service';
import { WeightsDialectDto, WeightsQueryDto } from './weights-query';

/** Fine-Tunes; a body with a prompt is a text-to-image request. */
@ApiTags('Fine-Tunes')
@Controller('v1/finetunes')
export class FinetunesController {
  constructor(
    private readonly finetunes: FinetunesService,
    private readonly weights: FinetuneWeightsService,
    private readonly trainings: TrainingsService,
    private readonly generations: GenerationsService,
  ) {}

  @Post()
  @LocatedAt((record) => ('num_generations' in record ? '/v1/sd/text-to-image' : '/v1/finetunes'))
  @AnswersWhenDone()
  @ApiPrefersWait()
  @ApiCreates('createFinetuneOrGeneration', 'Train or register a Fine-Tune, or draw pictures from a prompt', {
    description:
      'A body with `name` and no `prompt` makes a Fine-Tune; any other is a text-to-image request. ' +
      'With `images_url` the Fine-Tune is trained: its `status` is `queued`, and its pictures are fetched and checked by a worker. ' +
      'With `weights_url` its weights are fetched, and it is `queued` until they are there. ' +
      'Without either it is `registered`. Of the two answers only a Fine-Tune has a `token`.',
    body: [CreateFinetuneDto, CreateGenerationDto],
    reply: [RegisteredFinetuneDto, GenerationDto],
    isLocated: true,
    errors: [404, 422],
  })
  create(
    @Caller() caller: CallerKey,
    @FinetuneOrGenerationBody() dto: CreateFinetuneDto | CreateGenerationDto,
  ): Promise<FinetuneDto | GenerationDto> {
    return dto instanceof CreateFinetuneDto ? this.trainings.create(caller, dto) : this.generations.create(caller, dto);
  }

  @Get()
  @ApiLists('listFinetunes', 'List your Fine-Tunes, newest first', {
    reply: FinetuneDto,
    description: 'All of them, whatever their status; with `limit` in pages.',
  })
  @SendsList()
  findAll(@AccountId() accountId: string, @ValidQuery() filter: FinetuneQueryDto, @Res() _: Response): List {
    return this.finetunes.list(accountId, filter);
  }

  @Get(':id')
  @Weighs('light')
  @ApiFinds('getFinetune', 'Retrieve a Fine-Tune', {
    reply: FinetuneDto,
    description: 'With its weights, and whether they still fit the model that draws it.',
  })
  findOne(@AccountId() accountId: string, @Param('id') id: string): Promise<FinetuneDto> {
    return this.finetunes.findOne(accountId, id);
  }

  @Patch(':id')
  @ApiChanges('updateFinetune', 'Change the title, the metadata or the scale of a Fine-Tune', {
    body: UpdateFinetuneDto,
    reply: FinetuneDto,
    description: 'What is left out, or null, stays as it is.',
  })
  update(
    @AccountId() accountId: string,
    @Param('id') id: string,
    @ValidBody(UpdateFinetuneDto) dto: UpdateFinetuneDto,
  ): Promise<FinetuneDto> {
    return this.finetunes.update(accountId, id, dto);
  }

  @Put(':id/weights')
  @TakesFile()
  @ApiUploads('putFinetuneWeights', 'Upload the weights of a Fine-Tune', {
    description:
      'A safetensors file: a LoRA (diffusers or kohya names) or a textual inversion embedding. It is checked against the model and replaces what was there, with its `scale`. Any `Content-Type` is taken but that of a form, which is 415, as is a compressed body.',
    fileBytes: limits.weightsBytes,
    reply: FinetuneDto,
    errors: [422],
  })
  putWeights(
    @Caller() caller: CallerKey,
    @Param('id') id: string,
    @ValidQuery() { scale }: WeightsQueryDto,
    @FileBody() file: SentFile,
  ): Promise<FinetuneDto> {
    return this.weights.replace(caller, id, file, scale);
  }

  @Get(':id/weights')
  @ApiDownloads('getFinetuneWeights', 'Download the weights of a Fine-Tune', {
    description:
      'The safetensors file: of what was trained here a LoRA in the names of diffusers, or with `dialect=comfy` in those that ComfyUI reads; of what was uploaded the file as it came.',
  })
  @SendsFile()
  getWeights(
    @AccountId() accountId: string,
    @Param('id') id: string,
    @ValidQuery() { dialect }: WeightsDialectDto,
    @Res() _: Response,
  ): Promise<StoredFile> {
    return this.weights.read(accountId, id, dialect);
  }

  @Post(':id/cancel')
  @LocatedAt('/v1/finetunes')
  @ApiCreates('cancelFinetune', 'Cancel the training of a Fine-Tune, or the fetching of its weights', {
    description: 'Its status is `canceled` at once and for good, and nothing is kept. Prompts that wait for it fail.',
    reply: FinetuneDto,
    isLocated: true,
    errors: [404, 409],
  })
  cancel(@AccountId() accountId: string, @Param('id') id: string): Promise<FinetuneDto> {
    return this.trainings.cancel(accountId, id);
  }

  @Delete(':id')
  @ApiRemoves('deleteFinetune', 'Delete a Fine-Tune with its Prompts, their pictures and its weights', {
    description:
      'Its training, and Prompts that are waiting or being drawn, are canceled. Styles made from its Prompts stay.',
  })
  async remove(@AccountId() accountId: string, @Param('id') id: string): Promise<DeletedDto> {
    await this.finetunes.remove(accountId, id);
    return DeletedDto.of('Fine-Tune', id);
  }
}
