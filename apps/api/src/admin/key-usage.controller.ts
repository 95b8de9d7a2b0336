import { UsageDto, UsageQueryDto } from '@app/domain/http';
import { Controller, Get, Param } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { NeedsScope } from '../http/caller.decorator';
import { ApiFinds } from '../docs/operation';
import { ValidQuery } from '../http/query';
import { KeysService } from './keys.service';

/** The usage of any key. */
@ApiTags('Keys')
@Controller('v1/keys/:id/usage')
@NeedsScope('admin')
export class KeyUsageController {
  constructor(private readonly keys: KeysService) {}

  @Get()
  @ApiFinds('listKeyUsage', 'Pictures, steps and compute seconds of an API key', {
    reply: UsageDto,
    replyIsArray: true,
    errors: [400],
    description: 'As `GET /v1/usage` has them of the key that asks. It needs the scope `admin`.',
  })
  findAll(@Param('id') id: string, @ValidQuery() query: UsageQueryDto): Promise<UsageDto[]> {
    return this.keys.usage(id, query);
  }
}
