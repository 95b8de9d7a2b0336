import { KeyDto } from '@app/domain/http';
import { Controller, Get } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { OwnerId } from '../http/caller.decorator';
import { ApiReads } from '../docs/operation';
import { KeysService } from './keys.service';

/** The key of the caller, whatever its scope. */
@ApiTags('Keys')
@Controller('v1/key')
export class CurrentKeyController {
  constructor(private readonly keys: KeysService) {}

  @Get()
  @ApiReads('getCurrentKey', 'Read the API key that asks', {
    reply: KeyDto,
    description: 'What it may do, and how much.',
  })
  find(@OwnerId() ownerId: string): Promise<KeyDto> {
    return this.keys.findOne(ownerId);
  }
}
