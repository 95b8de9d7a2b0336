import { GenerationDto, PromptDto } from '@app/domain/http';
import { Controller, Get, Param, Req, Res } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { OwnerId } from '../auth/api-key.guard';
import { ApiStreams } from '../docs/stream';
import { FinetunePromptsService } from '../finetune-prompts/finetune-prompts.service';
import { TextToImageService } from '../text-to-image/text-to-image.service';
import { EventsService } from './events.service';

/** Live progress of Generations and Prompts. */
@ApiTags('Events')
@Controller('v1')
export class EventsController {
  constructor(
    private readonly events: EventsService,
    private readonly textToImage: TextToImageService,
    private readonly prompts: FinetunePromptsService,
  ) {}

  @Get('sd/text-to-image/:id/events')
  @ApiStreams('streamGenerationEvents', 'Follow a Generation', GenerationDto)
  ofGeneration(
    @OwnerId() ownerId: string,
    @Param('id') id: string,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const readRecord = () => this.textToImage.findOne(ownerId, id);
    return this.events.open(ownerId, { id, readRecord }, request, response);
  }

  @Get('finetunes/:id/prompts/:prompt_id/events')
  @ApiStreams('streamPromptEvents', 'Follow a Prompt', PromptDto)
  ofPrompt(
    @OwnerId() ownerId: string,
    @Param('id') id: string,
    @Param('prompt_id') promptId: string,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const readRecord = () => this.prompts.findOne(ownerId, id, promptId);
    return this.events.open(ownerId, { id: promptId, readRecord }, request, response);
  }
}
