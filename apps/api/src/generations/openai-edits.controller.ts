import type { GenerationDto } from '@app/domain/http';
import { Controller, HttpCode, Post, Res } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import { ApiOpenaiEdits } from '../docs/openai';
import { Caller, type CallerKey } from '../http/caller.decorator';
import { FormBody, type SentForm } from '../http/form';
import { type Repeatable, Repeats } from '../http/repeatable';
import { AnswersWhenDone, TakesForm } from '../http/route.decorators';
import { OpenaiAnswer } from './openai-answer';
import { OpenaiEdits } from './openai-edits.service';

/** Changes a picture in the shape of OpenAI's API, for its clients. */
@ApiTags('OpenAI')
@Controller('v1/images/edits')
export class OpenaiEditsController {
  constructor(private readonly edits: OpenaiEdits) {}

  @Post()
  @HttpCode(200)
  @AnswersWhenDone(OpenaiAnswer)
  @TakesForm()
  @ApiOpenaiEdits()
  create(
    @Caller() caller: CallerKey,
    @FormBody() form: SentForm,
    @Repeats() repeatable: Repeatable,
    @Res() _: Response,
  ): Promise<GenerationDto> {
    return this.edits.create(caller, form, repeatable);
  }
}
