import { GenerationDto, ImageTask, PromptDto } from '@app/domain';
import { Controller, Get, Param, Req, Res } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { InjectRepository } from '@nestjs/typeorm';
import type { Request, Response } from 'express';
import { Repository } from 'typeorm';
import { OwnerId } from '../auth/api-key.guard';
import { ApiStreams } from '../docs/stream';
import { FinetunePromptsService } from '../finetune-prompts/finetune-prompts.service';
import { TextToImageService } from '../text-to-image/text-to-image.service';
import { EventStream } from './event-stream';
import { TaskEventsService } from './task-events.service';

/** Live progress of Generations and Prompts. */
@ApiTags('Events')
@Controller('v1')
export class EventsController {
  constructor(
    @InjectRepository(ImageTask) private readonly tasks: Repository<ImageTask>,
    private readonly events: TaskEventsService,
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
    return this.stream(id, () => this.textToImage.findOne(ownerId, id), request, response);
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
    return this.stream(promptId, () => this.prompts.findOne(ownerId, id, promptId), request, response);
  }

  /** Reading the record first refuses what is unknown or another caller's, as GET does. */
  private async stream(taskId: string, readRecord: () => Promise<unknown>, request: Request, response: Response) {
    await readRecord();
    const readTask = async () => (await this.tasks.findOneBy({ id: taskId })) ?? undefined;
    EventStream.open(this.events, { taskId, readTask, readRecord }, request, response);
  }
}
