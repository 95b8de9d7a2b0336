import { DrawingDto, DrawingQueryDto } from '@app/domain/http';
import { Controller, Get, Res } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import { ApiLists } from '../docs/operation';
import { AccountId } from '../http/caller.decorator';
import type { List } from '../http/list';
import { SendsList } from '../http/list.interceptor';
import { ValidQuery } from '../http/query';
import { DrawingsService } from './drawings.service';

/** Generations and Prompts together. */
@ApiTags('Drawings')
@Controller('v1/drawings')
export class DrawingsController {
  constructor(private readonly drawings: DrawingsService) {}

  @Get()
  @ApiLists('listDrawings', 'List your Generations and Prompts together, newest first', {
    reply: DrawingDto,
    description:
      'In short: the records are at `/v1/sd/text-to-image/{id}` and `/v1/finetunes/{finetune}/prompts/{id}`. All of ' +
      'them, or those of a kind, a status, a Fine-Tune or a time; with `limit` in pages.',
  })
  @SendsList()
  findAll(@AccountId() accountId: string, @ValidQuery() filter: DrawingQueryDto, @Res() _: Response): List {
    return this.drawings.list(accountId, filter);
  }
}
