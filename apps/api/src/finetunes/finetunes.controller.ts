import { CreateGenerationDto, GenerationDto } from '@app/domain';
import { Controller, Post } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { OwnerId } from '../auth/api-key.guard';
import { ApiCreates } from '../docs/operation';
import { ValidBody } from '../http/body';
import { TextToImageService } from '../text-to-image/text-to-image.service';

/** Fine-Tunes; a body with a prompt is a text-to-image request. */
@ApiTags('Fine-Tunes')
@Controller('v1/finetunes')
export class FinetunesController {
  constructor(private readonly textToImage: TextToImageService) {}

  @Post()
  @ApiCreates('createFinetuneOrGeneration', 'Draw pictures from a prompt', {
    body: CreateGenerationDto,
    reply: GenerationDto,
    errors: [422],
  })
  create(@OwnerId() ownerId: string, @ValidBody(CreateGenerationDto) dto: CreateGenerationDto): Promise<GenerationDto> {
    return this.textToImage.create(ownerId, dto);
  }
}
