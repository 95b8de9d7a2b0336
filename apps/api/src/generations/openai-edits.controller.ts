import type { GenerationDto } from '@app/domain/http';
import { Controller, HttpCode, Post } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { ApiOpenaiEdits } from '../docs/openai';
import { Caller, type CallerKey } from '../http/caller.decorator';
import { FormBody, type SentForm } from '../http/form';
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
  create(@Caller() caller: CallerKey, @FormBody() form: SentForm): Promise<GenerationDto> {
    return this.edits.create(caller, form);
  }
}
