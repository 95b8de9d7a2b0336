import { CreateStyleDto, DeletedDto, StyleDto } from '@app/domain/http';
import { Controller, Delete, Get, Param, Post, Res } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import { AccountId, Caller, type CallerKey } from '../http/caller.decorator';
import { ApiCreates, ApiFinds, ApiLists, ApiRemoves } from '../docs/operation';
import { ValidBodyArray } from '../http/body';
import { SendsList } from '../http/list.interceptor';
import { Weighs } from '../http/route.decorators';
import type { List } from '../http/list';
import { StylesService } from './styles.service';

/** Styles of a Collection. */
@ApiTags('Styles')
@Controller('v1/prompts/collections/:id/styles')
export class StylesController {
  constructor(private readonly styles: StylesService) {}

  @Post()
  @Weighs('heavy')
  @ApiCreates('createStyles', 'Add Styles made from your Prompts to a Collection', {
    description:
      "Each keeps its Prompt's text, with a place for the name of the Fine-Tune it will be applied to, and its controls. It outlives the Prompt.",
    body: CreateStyleDto,
    bodyIsArray: true,
    reply: StyleDto,
    replyIsArray: true,
    errors: [403, 404, 422],
  })
  create(
    @Caller() caller: CallerKey,
    @Param('id') id: string,
    @ValidBodyArray(CreateStyleDto) dtos: CreateStyleDto[],
  ): Promise<StyleDto[]> {
    return this.styles.create(caller, id, dtos);
  }

  @Get()
  @ApiLists('listStyles', 'List the Styles of a Collection, newest first', {
    reply: StyleDto,
    errors: [404],
    description: 'The Collection may be yours or a public one.',
  })
  @SendsList()
  findAll(@AccountId() accountId: string, @Param('id') id: string, @Res() _: Response): Promise<List> {
    return this.styles.list(accountId, id);
  }

  @Get(':style_id')
  @Weighs('light')
  @ApiFinds('getStyle', 'Retrieve a Style', {
    reply: StyleDto,
    description: "Its thumbnail is its Prompt's first picture; null until there is one.",
  })
  findOne(
    @AccountId() accountId: string,
    @Param('id') id: string,
    @Param('style_id') styleId: string,
  ): Promise<StyleDto> {
    return this.styles.findOne(accountId, id, styleId);
  }

  @Delete(':style_id')
  @ApiRemoves('deleteStyle', 'Delete a Style and its thumbnail', {
    errors: [403],
    description: 'Prompts that were drawn in it stay.',
  })
  async remove(
    @AccountId() accountId: string,
    @Param('id') id: string,
    @Param('style_id') styleId: string,
  ): Promise<DeletedDto> {
    await this.styles.remove(accountId, id, styleId);
    return DeletedDto.of('Style', styleId);
  }
}
