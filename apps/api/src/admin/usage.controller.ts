import { UsageDto, UsageQueryDto } from '@app/domain/http';
import { Controller, Get } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Caller, type CallerKey } from '../http/caller.decorator';
import { ApiReads } from '../docs/operation';
import { ValidQuery } from '../http/query';
import { UsageService } from './usage.service';

/** The usage of a key. */
@ApiTags('Usage')
@Controller('v1/usage')
export class UsageController {
  constructor(private readonly usage: UsageService) {}

  @Get()
  @ApiReads('listUsage', 'Pictures, steps, pixels and compute seconds of your key or account', {
    reply: UsageDto,
    replyIsArray: true,
    errors: [400, 403],
    description:
      'Days are UTC days, newest first; all else by name. With `scope=account` and `group_by=key,user` it is the bill of an account.',
  })
  findAll(@Caller() caller: CallerKey, @ValidQuery() query: UsageQueryDto): Promise<UsageDto[]> {
    return this.usage.findAll(caller, query);
  }
}
