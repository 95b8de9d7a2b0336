import { UsageDto, UsageQueryDto } from '@app/domain/http';
import { Controller, Get } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { OwnerId } from '../http/caller.decorator';
import { ApiReads } from '../docs/operation';
import { ValidQuery } from '../http/query';
import { UsageService } from './usage.service';

/** The usage of a key. */
@ApiTags('Usage')
@Controller('v1/usage')
export class UsageController {
  constructor(private readonly usage: UsageService) {}

  @Get()
  @ApiReads('listUsage', 'Pictures, steps and compute seconds of your key', {
    reply: UsageDto,
    replyIsArray: true,
    errors: [400],
    description: 'Days are UTC days. Days newest first; models and Fine-Tunes by name.',
  })
  findAll(@OwnerId() ownerId: string, @ValidQuery() query: UsageQueryDto): Promise<UsageDto[]> {
    return this.usage.findAll(ownerId, query);
  }
}
