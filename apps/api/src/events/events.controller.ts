import { FinetuneDto, GenerationDto, TerminatedPromptDto } from '@app/domain/http';
import { Controller, Get, Param, Res } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import { AccountId } from '../http/caller.decorator';
import { ApiStreams, ofTrainings } from '../docs/stream';
import { FinetunesService } from '../finetunes/finetunes.service';
import { FinetunePromptsService } from '../finetunes/finetune-prompts.service';
import { GenerationsService } from '../generations/generations.service';
import { SendsEvents } from './events.interceptor';
import type { FollowedTask } from './task-feed';

/** Live progress of Generations, Prompts and trainings. */
@ApiTags('Events')
@Controller('v1')
export class EventsController {
  constructor(
    private readonly generations: GenerationsService,
    private readonly prompts: FinetunePromptsService,
    private readonly finetunes: FinetunesService,
  ) {}

  @Get('sd/text-to-image/:id/events')
  @ApiStreams('streamGenerationEvents', 'Follow a Generation', GenerationDto)
  @SendsEvents()
  ofGeneration(@AccountId() accountId: string, @Param('id') id: string, @Res() _: Response): FollowedTask {
    return { id, readRecord: () => this.generations.findOne(accountId, id) };
  }

  @Get('finetunes/:id/events')
  @ApiStreams('streamFinetuneEvents', 'Follow the training of a Fine-Tune', FinetuneDto, ofTrainings)
  @SendsEvents()
  ofFinetune(@AccountId() accountId: string, @Param('id') id: string, @Res() _: Response): FollowedTask {
    return {
      id,
      readRecord: () => this.finetunes.findMade(accountId, id),
      readAdvance: async () => {
        const { training } = await this.finetunes.findMade(accountId, id);
        return training ? { step: training.step, total: training.steps } : undefined;
      },
    };
  }

  @Get('finetunes/:id/prompts/:prompt_id/events')
  @ApiStreams('streamPromptEvents', 'Follow a Prompt', TerminatedPromptDto)
  @SendsEvents()
  ofPrompt(
    @AccountId() accountId: string,
    @Param('id') id: string,
    @Param('prompt_id') promptId: string,
    @Res() _: Response,
  ): FollowedTask {
    return { id: promptId, readRecord: () => this.prompts.findTerminated(accountId, id, promptId) };
  }
}
