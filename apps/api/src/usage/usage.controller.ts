import { UsageDto, usageGroups } from '@app/domain/http';
import { Controller, Get } from '@nestjs/common';
import { ApiQuery, ApiTags } from '@nestjs/swagger';
import { OwnerId } from '../auth/api-key.guard';
import { ApiReads } from '../docs/operation';
import type { UsageQuery } from './usage-query';
import { UsageParameters } from './usage-query';
import { UsageService } from './usage.service';

const day = { type: 'string', format: 'date', pattern: '^[1-9]' } as const;

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
  @ApiQuery({
    name: 'from',
    required: false,
    description: 'First day; 29 days before `to` when left out.',
    schema: day,
  })
  @ApiQuery({ name: 'to', required: false, description: 'Last day; today when left out.', schema: day })
  @ApiQuery({ name: 'group_by', required: false, schema: { type: 'string', enum: [...usageGroups], default: 'day' } })
  findAll(@OwnerId() ownerId: string, @UsageParameters() query: UsageQuery): Promise<UsageDto[]> {
    return this.usage.findAll(ownerId, query);
  }
}
