import { type Config, CONFIG } from '@app/config';
import { NotFoundError } from '@app/domain';
import { Controller, Get, Inject, Param, Res } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { Response } from 'express';
import { Public } from '../http/caller.decorator';
import { sendStored } from '../http/send-stored';
import { ImagesService, type StoredImage } from './images.service';
import { PictureReaders } from './picture-readers';

/** Serves pictures by their unguessable URL, without a key. */
@ApiExcludeController()
@Public()
@Controller('images')
export class ImagesController {
  private readonly readers = new PictureReaders();

  constructor(
    private readonly images: ImagesService,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  @Get(':file')
  async findOne(@Param('file') file: string, @Res() response: Response): Promise<void> {
    if (await this.images.serve(file, (image) => this.send(file, image, response))) return;
    // A CDN may keep a 404 that does not say so, and the picture of a Style may still come.
    response.setHeader('Cache-Control', 'no-store');
    throw new NotFoundError('Image');
  }

  private async send(file: string, { contentType, ...stored }: StoredImage, response: Response): Promise<void> {
    const etag = `"${file}"`;
    response.set({
      'Content-Type': contentType,
      'Cache-Control': `${this.config.pictureCache}, max-age=31536000, immutable`,
      // A URL always has the same picture.
      ETag: etag,
      // Any page that knows a picture's URL may show it.
      'Cross-Origin-Resource-Policy': 'cross-origin',
      'X-Content-Type-Options': 'nosniff',
    });
    await sendStored(response, { ...stored, etag }, this.readers);
  }
}
