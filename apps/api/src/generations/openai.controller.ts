import { CreateImagesDto, type GenerationDto } from '@app/domain/http';
import { Controller, HttpCode, Post, Res } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import { Caller, type CallerKey } from '../http/caller.decorator';
import { ApiOpenai } from '../docs/openai';
import { AnswersWhenDone } from '../http/route.decorators';
import { ValidBody } from '../http/body';
import { type Repeatable, Repeats } from '../http/repeatable';
import { GenerationsService } from './generations.service';
import { OpenaiAnswer } from './openai-answer';
import { OpenaiOrders } from './openai-orders.service';
import { Unanswered } from './unanswered';

/** Pictures from a prompt in the shape of OpenAI's API, for its clients. */
@ApiTags('OpenAI')
@Controller('v1/images/generations')
export class OpenaiController {
  constructor(
    private readonly generations: GenerationsService,
    private readonly orders: OpenaiOrders,
    private readonly unanswered: Unanswered,
  ) {}

  @Post()
  @HttpCode(200)
  @AnswersWhenDone(OpenaiAnswer)
  @ApiOpenai()
  async create(
    @Caller() caller: CallerKey,
    @ValidBody(CreateImagesDto) dto: CreateImagesDto,
    @Repeats() repeatable: Repeatable,
    @Res() _: Response,
  ): Promise<GenerationDto> {
    const earlier = await this.unanswered.take(caller.id, repeatable);
    return earlier ?? this.generations.create(caller, await this.orders.read(dto));
  }
}
