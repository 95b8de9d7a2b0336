import { CollectionDto, CollectionQueryDto, CreateCollectionDto, DeletedDto } from '@app/domain/http';
import { Controller, Delete, Get, Param, Post, Res } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import { AccountId, Caller, type CallerKey } from '../http/caller.decorator';
import { ApiCreates, ApiFinds, ApiLists, ApiRemoves } from '../docs/operation';
import { ValidBody } from '../http/body';
import { SendsList } from '../http/list.interceptor';
import { LocatedAt, Weighs } from '../http/route.decorators';
import { ValidQuery } from '../http/query';
import type { List } from '../http/list';
import { CollectionsService } from './collections.service';

/** Collections of Styles. */
@ApiTags('Collections')
@Controller('v1/prompts/collections')
export class CollectionsController {
  constructor(private readonly collections: CollectionsService) {}

  @Post()
  @LocatedAt('/v1/prompts/collections')
  @ApiCreates('createCollection', 'Make a Collection of Styles from your Prompts', {
    body: CreateCollectionDto,
    reply: CollectionDto,
    description: 'Each Style is made from one of your Prompts; there may be none, and more can be added later.',
    isLocated: true,
    errors: [422],
  })
  create(
    @Caller() caller: CallerKey,
    @ValidBody(CreateCollectionDto) dto: CreateCollectionDto,
  ): Promise<CollectionDto> {
    return this.collections.create(caller, dto);
  }

  @Get()
  @ApiLists('listCollections', 'List your Collections, or the public ones, newest first', {
    reply: CollectionDto,
    description: 'Yours, or with `scope=public` those that ship with the service; with `limit` in pages.',
  })
  @SendsList()
  findAll(@AccountId() accountId: string, @ValidQuery() { scope }: CollectionQueryDto, @Res() _: Response): List {
    return this.collections.list(accountId, scope);
  }

  @Get(':id')
  @Weighs('light')
  @ApiFinds('getCollection', 'Retrieve a Collection', {
    reply: CollectionDto,
    description: "Yours or a public one. Its thumbnail is its first Style's; its Styles have a route of their own.",
  })
  findOne(@AccountId() accountId: string, @Param('id') id: string): Promise<CollectionDto> {
    return this.collections.findOne(accountId, id);
  }

  @Delete(':id')
  @ApiRemoves('deleteCollection', 'Delete a Collection with its Styles', {
    errors: [403],
    description: 'Prompts that were drawn in its Styles stay.',
  })
  async remove(@AccountId() accountId: string, @Param('id') id: string): Promise<DeletedDto> {
    await this.collections.remove(accountId, id);
    return DeletedDto.of('Collection', id);
  }
}
