import { limits } from '@app/domain';
import { VerificationDto } from '@app/domain/http';
import { Controller, HttpCode, Post } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { ApiVerifies } from '../docs/operation';
import { Caller, type CallerKey, NeedsScope } from '../http/caller.decorator';
import { FileBody } from '../http/file-body';
import type { SentFile } from '../http/receive-file';
import { TakesFile } from '../http/route.decorators';
import { VerificationService } from './verification.service';

const { bytes } = limits.sentPicture;

/** What pictures say of themselves. */
@ApiTags('Verification')
@Controller('v1/verify')
export class VerificationController {
  constructor(private readonly verification: VerificationService) {}

  @Post()
  @HttpCode(200)
  @NeedsScope('read')
  @TakesFile()
  @ApiVerifies('verifyPicture', 'Read what a picture says of itself', {
    description:
      `The body is the file: a PNG, JPEG or WebP of at most ${bytes / 1e6} MB. The answer says whether it is marked as made by a model, ` +
      'whether its Content Credentials hold, and which record of yours made it. The picture is not kept.',
    fileBytes: bytes,
    reply: VerificationDto,
  })
  verify(@Caller() caller: CallerKey, @FileBody() file: SentFile): Promise<VerificationDto> {
    return this.verification.verify(caller, file);
  }
}
