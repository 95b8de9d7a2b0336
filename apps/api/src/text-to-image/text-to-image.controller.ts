import type { Config } from '@app/config';
import { ApiKey, CreateGenerationDto, DeletedDto, GenerationDto } from '@app/domain';
import { Controller, Delete, Get, Inject, Param, Post, Req, Res } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { Caller, OwnerId } from '../auth/api-key.guard';
import { CONFIG } from '../config.token';
import { ApiCreates, ApiFinds, ApiLists, ApiRemoves } from '../docs/operation';
import { ValidBody } from '../http/body';
import type { Page } from '../records/page';
import { linkNext, PageQuery } from '../records/page';
import { TextToImageService } from './text-to-image.service';

/** Pictures from a prompt. */
@ApiTags('Text to image')
@Controller('v1/sd/text-to-image')
export class TextToImageController {
  constructor(
    private readonly textToImage: TextToImageService,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  @Post()
  @ApiCreates('createGeneration', 'Draw pictures from a prompt', {
    body: CreateGenerationDto,
    reply: GenerationDto,
    errors: [422],
  })
  create(@Caller() caller: ApiKey, @ValidBody(CreateGenerationDto) dto: CreateGenerationDto): Promise<GenerationDto> {
    return this.textToImage.create(caller, dto);
  }

  @Get()
  @ApiLists('listGenerations', 'List your Generations, newest first', { reply: GenerationDto })
  async findAll(
    @OwnerId() ownerId: string,
    @PageQuery() page: Page,
    @Req() request: Request,
    @Res({ passthrough: true }) response: Response,
  ): Promise<GenerationDto[]> {
    const found = await this.textToImage.findAll(ownerId, page);
    linkNext(request, response, this.config.publicUrl, found);
    return found.rows;
  }

  @Get(':id')
  @ApiFinds('getGeneration', 'Retrieve a Generation', { reply: GenerationDto })
  findOne(@OwnerId() ownerId: string, @Param('id') id: string): Promise<GenerationDto> {
    return this.textToImage.findOne(ownerId, id);
  }

  @Post(':id/cancel')
  @ApiCreates('cancelGeneration', 'Cancel a Generation that has not finished', {
    reply: GenerationDto,
    errors: [404, 409],
  })
  cancel(@OwnerId() ownerId: string, @Param('id') id: string): Promise<GenerationDto> {
    return this.textToImage.cancel(ownerId, id);
  }

  @Delete(':id')
  @ApiRemoves('deleteGeneration', 'Delete a Generation and its pictures')
  async remove(@OwnerId() ownerId: string, @Param('id') id: string): Promise<DeletedDto> {
    await this.textToImage.remove(ownerId, id);
    return DeletedDto.of('Generation', id);
  }
}
