import { PromptStatusDto } from '@app/domain/http';
import { Controller, Get, Param } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { AccountId } from '../http/caller.decorator';
import { ApiFinds } from '../docs/operation';
import { Weighs } from '../http/route.decorators';
import { FinetunePromptsService } from '../finetunes/finetune-prompts.service';
import { LastSteps } from './last-steps';
import { QueuePositions } from './queue-positions';

/** The status of a Fine-Tune's Prompt. */
@ApiTags('Prompts')
@Controller('v1/finetunes/:id/prompts/:prompt_id/status')
export class PromptStatusController {
  constructor(
    private readonly prompts: FinetunePromptsService,
    private readonly positions: QueuePositions,
    private readonly steps: LastSteps,
  ) {}

  @Get()
  @Weighs('light')
  @ApiFinds('getPromptStatus', 'Retrieve the status of a Prompt', {
    reply: PromptStatusDto,
    description:
      'What a Prompt itself has no fields for: its status, its place in the queue, its step, and what draws it.',
  })
  async findOne(
    @AccountId() accountId: string,
    @Param('id') id: string,
    @Param('prompt_id') promptId: string,
  ): Promise<PromptStatusDto> {
    const { drawing, thumbnail } = await this.prompts.findDrawing(accountId, id, promptId);
    const { task } = drawing;
    const queuePosition = task.status === 'queued' && task.queue !== 'waiting' ? await this.positions.of(task) : null;
    return PromptStatusDto.of(drawing, { queuePosition, step: this.steps.of(task.id), thumbnail });
  }
}
