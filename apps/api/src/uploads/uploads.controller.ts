import { limits, uploadLifeHours } from '@app/domain';
import { DeletedDto, UploadDto } from '@app/domain/http';
import { Controller, Delete, Get, Param, Post, Res } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import { ApiCreates, ApiFinds, ApiLists, ApiRemoves } from '../docs/operation';
import { AccountId, OwnerId } from '../http/caller.decorator';
import { FileBody } from '../http/file-body';
import type { List } from '../http/list';
import { SendsList } from '../http/list.interceptor';
import type { SentFile } from '../http/receive-file';
import { LocatedAt, TakesFile, Weighs } from '../http/route.decorators';
import { UploadedPicturesService } from './uploaded-pictures.service';

const { bytes, pixels, edge } = limits.sentPicture;

/** Pictures that callers send. */
@ApiTags('Uploads')
@Controller('v1/uploads')
export class UploadsController {
  constructor(private readonly uploads: UploadedPicturesService) {}

  @Post()
  @TakesFile()
  @LocatedAt('/v1/uploads')
  @ApiCreates('createUpload', 'Upload a picture', {
    description:
      `The body is the file: a PNG, JPEG or WebP of at most ${bytes / 1e6} MB and ${pixels / 1e6} megapixels, with at most ${edge} pixels on an edge; its first bytes decide, ` +
      'and of an animation only the first picture is kept. It keeps nothing but its pixels and their profile; one that has to be turned upright becomes a PNG. ' +
      `It goes after ${uploadLifeHours} hours unless a record uses it, and counts against the storage of its key. ` +
      'Any `Content-Type` is taken but that of a form, which is 415, as is a compressed body.',
    fileBytes: bytes,
    reply: UploadDto,
    isLocated: true,
  })
  create(@OwnerId() ownerId: string, @FileBody() file: SentFile): Promise<UploadDto> {
    return this.uploads.create(ownerId, file);
  }

  @Get()
  @ApiLists('listUploads', 'List your uploads, newest first', {
    reply: UploadDto,
    description: 'Those that are still there; with `limit` in pages.',
  })
  @SendsList()
  findAll(@AccountId() accountId: string, @Res() _: Response): List {
    return this.uploads.list(accountId);
  }

  @Get(':id')
  @Weighs('light')
  @ApiFinds('getUpload', 'Retrieve an upload', { reply: UploadDto, description: 'And when it goes.' })
  findOne(@AccountId() accountId: string, @Param('id') id: string): Promise<UploadDto> {
    return this.uploads.findOne(accountId, id);
  }

  @Delete(':id')
  @ApiRemoves('deleteUpload', 'Delete an upload', {
    description: 'Records that use it stay; one that is still to be drawn from it fails.',
  })
  async remove(@AccountId() accountId: string, @Param('id') id: string): Promise<DeletedDto> {
    await this.uploads.remove(accountId, id);
    return DeletedDto.of('Upload', id);
  }
}
