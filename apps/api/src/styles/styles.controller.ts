import { CreateStyleDto, DeletedDto, StyleDto } from '@app/domain/http';
import { Controller, Delete, Get, Param, Post, Req, Res } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { OwnerId } from '../auth/api-key.guard';
import { ApiCreates, ApiFinds, ApiLists, ApiRemoves } from '../docs/operation';
import { ValidBodyArray } from '../http/body';
import { Lists } from '../records/lists';
import type { Page } from '../records/page';
import { PageQuery } from '../records/page';
import { StylesService } from './styles.service';

/** Styles of a Collection. */
@ApiTags('Styles')
@Controller('v1/prompts/collections/:id/styles')
export class StylesController {
  constructor(
    private readonly styles: StylesService,
    private readonly lists: Lists,
  ) {}

  @Post()
  @ApiCreates('createStyles', 'Add Styles made from your Prompts to a Collection', {
    body: CreateStyleDto,
    bodyIsArray: true,
    reply: StyleDto,
    replyIsArray: true,
    errors: [403, 404, 422],
  })
  create(
    @OwnerId() ownerId: string,
    @Param('id') id: string,
    @ValidBodyArray(CreateStyleDto) dtos: CreateStyleDto[],
  ): Promise<StyleDto[]> {
    return this.styles.create(ownerId, id, dtos);
  }

  @Get()
  @ApiLists('listStyles', 'List the Styles of a Collection, newest first', { reply: StyleDto, errors: [404] })
  async findAll(
    @OwnerId() ownerId: string,
    @Param('id') id: string,
    @PageQuery() page: Page,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    await this.lists.send(request, response, page, await this.styles.list(ownerId, id));
  }

  @Get(':style_id')
  @ApiFinds('getStyle', 'Retrieve a Style', { reply: StyleDto })
  findOne(@OwnerId() ownerId: string, @Param('id') id: string, @Param('style_id') styleId: string): Promise<StyleDto> {
    return this.styles.findOne(ownerId, id, styleId);
  }

  @Delete(':style_id')
  @ApiRemoves('deleteStyle', 'Delete a Style and its thumbnail', { errors: [403] })
  async remove(
    @OwnerId() ownerId: string,
    @Param('id') id: string,
    @Param('style_id') styleId: string,
  ): Promise<DeletedDto> {
    await this.styles.remove(ownerId, id, styleId);
    return DeletedDto.of('Style', styleId);
  }
}
