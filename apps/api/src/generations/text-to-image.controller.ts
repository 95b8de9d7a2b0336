import { CreateGenerationDto, DeletedDto, GenerationDto, TaskQueryDto } from '@app/domain/http';
import { Controller, Delete, Get, Param, Post, Res } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import { Caller, type CallerKey, AccountId } from '../http/caller.decorator';
import { ApiCreates, ApiFinds, ApiLists, ApiPrefersWait, ApiRemoves } from '../docs/operation';
import { AnswersWhenDone, LocatedAt, Weighs } from '../http/route.decorators';
import { ValidBody } from '../http/body';
import { SendsList } from '../http/list.interceptor';
import { ValidQuery } from '../http/query';
import type { List } from '../http/list';
import { GenerationsService } from './generations.service';

/** Pictures from a prompt. */
@ApiTags('Text to image')
@Controller('v1/sd/text-to-image')
export class TextToImageController {
  constructor(private readonly generations: GenerationsService) {}

  @Post()
  @LocatedAt('/v1/sd/text-to-image')
  @AnswersWhenDone()
  @ApiCreates('createGeneration', 'Draw pictures from a prompt', {
    body: CreateGenerationDto,
    reply: GenerationDto,
    isLocated: true,
    errors: [404, 422],
    description:
      'Answers at once with the queued Generation, or with `Prefer: wait=<seconds>` when it has terminated. ' +
      'Its pictures can be waited for at `GET /v1/sd/text-to-image/{id}`, at its events, or at a `webhook`.',
  })
  @ApiPrefersWait()
  create(
    @Caller() caller: CallerKey,
    @ValidBody(CreateGenerationDto) dto: CreateGenerationDto,
  ): Promise<GenerationDto> {
    return this.generations.create(caller, dto);
  }

  @Get()
  @ApiLists('listGenerations', 'List your Generations, newest first', {
    reply: GenerationDto,
    description: 'All of them, or those with a status or of a time; with `limit` in pages.',
  })
  @SendsList()
  findAll(@AccountId() accountId: string, @ValidQuery() filter: TaskQueryDto, @Res() _: Response): List {
    return this.generations.list(accountId, filter);
  }

  @Get(':id')
  @Weighs('light')
  @ApiFinds('getGeneration', 'Retrieve a Generation', {
    reply: GenerationDto,
    description: 'Its `images` are empty until its status is `succeeded`. Their URLs need no key.',
  })
  findOne(@AccountId() accountId: string, @Param('id') id: string): Promise<GenerationDto> {
    return this.generations.findOne(accountId, id);
  }

  @Post(':id/cancel')
  @LocatedAt('/v1/sd/text-to-image')
  @ApiCreates('cancelGeneration', 'Cancel a Generation that has not finished', {
    description: 'Its status is `canceled` at once and for good; one that is being drawn stops.',
    reply: GenerationDto,
    isLocated: true,
    errors: [404, 409],
  })
  cancel(@AccountId() accountId: string, @Param('id') id: string): Promise<GenerationDto> {
    return this.generations.cancel(accountId, id);
  }

  @Delete(':id')
  @ApiRemoves('deleteGeneration', 'Delete a Generation and its pictures', {
    description: 'One that has not finished is canceled first. The URLs of its pictures answer 404 from then on.',
  })
  async remove(@AccountId() accountId: string, @Param('id') id: string): Promise<DeletedDto> {
    await this.generations.remove(accountId, id);
    return DeletedDto.of('Generation', id);
  }
}
