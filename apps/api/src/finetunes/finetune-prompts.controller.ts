import {
  ApplyStyleDto,
  CreatedPromptDto,
  CreatePromptDto,
  DeletedDto,
  PartialPromptDto,
  PromptDto,
  TaskQueryDto,
  TerminatedPromptDto,
} from '@app/domain/http';
import { Controller, Delete, Get, Param, Post, Res } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import { Caller, type CallerKey, AccountId } from '../http/caller.decorator';
import { ApiCreates, ApiFinds, ApiLists, ApiRemoves } from '../docs/operation';
import { ValidBodyArray } from '../http/body';
import { SendsList } from '../http/list.interceptor';
import { ValidQuery } from '../http/query';
import { Weighs } from '../http/route.decorators';
import type { List } from '../http/list';
import { FinetunePromptsService } from './finetune-prompts.service';

/** Prompts of a Fine-Tune. */
@ApiTags('Prompts')
@Controller('v1/finetunes/:id')
export class FinetunePromptsController {
  constructor(private readonly prompts: FinetunePromptsService) {}

  @Post('prompts')
  @ApiCreates('createPrompts', 'Draw Prompts with a Fine-Tune', {
    description:
      'Answers at once with one Prompt for each element, in their order; pictures follow. If one element is wrong, nothing is created.',
    body: CreatePromptDto,
    bodyIsArray: true,
    reply: CreatedPromptDto,
    replyIsArray: true,
    errors: [404, 422],
  })
  create(
    @Caller() caller: CallerKey,
    @Param('id') id: string,
    @ValidBodyArray(CreatePromptDto) dtos: CreatePromptDto[],
  ): Promise<CreatedPromptDto[]> {
    return this.prompts.create(caller, id, dtos);
  }

  @Post('styles')
  @Weighs('heavy')
  @ApiCreates('applyStyles', 'Draw a Fine-Tune in Styles', {
    description: 'One Prompt for each Style; a Collection applies all of its Styles in their order.',
    body: ApplyStyleDto,
    bodyIsArray: true,
    reply: PartialPromptDto,
    replyIsArray: true,
    errors: [404, 422],
  })
  applyStyles(
    @Caller() caller: CallerKey,
    @Param('id') id: string,
    @ValidBodyArray(ApplyStyleDto) dtos: ApplyStyleDto[],
  ): Promise<PartialPromptDto[]> {
    return this.prompts.applyStyles(caller, id, dtos);
  }

  @Get('prompts')
  @ApiLists('listPrompts', 'List the Prompts of a Fine-Tune, newest first', {
    reply: PromptDto,
    errors: [404],
    description: 'All of them, or those with a status or of a time; with `limit` in pages.',
  })
  @SendsList()
  findAll(
    @AccountId() accountId: string,
    @Param('id') id: string,
    @ValidQuery() filter: TaskQueryDto,
    @Res() _: Response,
  ): Promise<List> {
    return this.prompts.list(accountId, id, filter);
  }

  @Get('prompts/:prompt_id')
  @Weighs('light')
  @ApiFinds('getPrompt', 'Retrieve a Prompt', {
    reply: PromptDto,
    description:
      'Its `images` are empty until it is drawn; `error_message` says why it was not. Its status has a route of its own.',
  })
  findOne(
    @AccountId() accountId: string,
    @Param('id') id: string,
    @Param('prompt_id') promptId: string,
  ): Promise<PromptDto> {
    return this.prompts.findOne(accountId, id, promptId);
  }

  @Post('prompts/:prompt_id/cancel')
  @ApiCreates('cancelPrompt', 'Cancel a Prompt that has not finished', {
    description: 'Its status is `canceled` at once and for good; one that is being drawn stops. The record stays.',
    reply: TerminatedPromptDto,
    errors: [404, 409],
  })
  cancel(
    @AccountId() accountId: string,
    @Param('id') id: string,
    @Param('prompt_id') promptId: string,
  ): Promise<TerminatedPromptDto> {
    return this.prompts.cancel(accountId, id, promptId);
  }

  @Delete('prompts/:prompt_id')
  @ApiRemoves('deletePrompt', 'Delete a Prompt and its pictures', {
    description: 'One that has not finished is canceled first. Styles made from it stay, with their thumbnails.',
  })
  async remove(
    @AccountId() accountId: string,
    @Param('id') id: string,
    @Param('prompt_id') promptId: string,
  ): Promise<DeletedDto> {
    await this.prompts.remove(accountId, id, promptId);
    return DeletedDto.of('Prompt', promptId);
  }
}
