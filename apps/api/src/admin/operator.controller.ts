import {
  ActivityDto,
  ActivityQueryDto,
  DeliveryQueryDto,
  FailureDto,
  KeyDeliveryDto,
  QueueDto,
  StorageDto,
  WorkerDto,
} from '@app/domain/http';
import { Controller, Get, Param, Post, Res } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import { NeedsScope } from '../http/caller.decorator';
import { ApiCreates, ApiLists, ApiReads } from '../docs/operation';
import { SendsList } from '../http/list.interceptor';
import { ValidQuery } from '../http/query';
import { Weighs } from '../http/route.decorators';
import type { List } from '../http/list';
import { ActivityService } from './activity.service';
import { FailuresService } from './failures.service';
import { KeyDeliveriesService } from './key-deliveries.service';
import { ServiceStateService } from './service-state.service';

/** State of the service, over all keys, for its operator. */
@ApiTags('Operator')
@Controller('v1')
@NeedsScope('admin')
export class OperatorController {
  constructor(
    private readonly state: ServiceStateService,
    private readonly activity: ActivityService,
    private readonly failures: FailuresService,
    private readonly deliveries: KeyDeliveriesService,
  ) {}

  @Get('queue')
  @ApiReads('getQueue', 'Read what waits and what is drawn', {
    reply: QueueDto,
    description: 'Over all keys, without their texts. It needs the scope `admin`.',
  })
  queue(): Promise<QueueDto> {
    return this.state.queue();
  }

  @Get('workers')
  @ApiReads('listWorkers', 'List the running workers, newest first', {
    reply: WorkerDto,
    replyIsArray: true,
    description:
      'Their devices with the loaded models, the batch and the memory, at most some seconds old; at most 100. It needs the scope `admin`.',
  })
  workers(): Promise<WorkerDto[]> {
    return this.state.liveWorkers();
  }

  @Get('storage')
  @ApiReads('getStorage', 'Read what is stored, and the room that is left', {
    reply: StorageDto,
    description: 'The files of all keys. It needs the scope `admin`.',
  })
  storage(): Promise<StorageDto> {
    return this.state.storage();
  }

  @Get('activity')
  @Weighs('heavy')
  @ApiReads('listActivity', 'Read what ended in each hour or day', {
    reply: ActivityDto,
    replyIsArray: true,
    errors: [400],
    description:
      'Over all keys but those of the sandbox, newest first, as far as the records are still there; `GET /v1/usage` counts those that are deleted too. It needs the scope `admin`.',
  })
  ended(@ValidQuery() query: ActivityQueryDto): Promise<ActivityDto[]> {
    return this.activity.read(query);
  }

  @Get('failures')
  @ApiLists('listFailures', 'List the failed Generations and Prompts, newest first', {
    reply: FailureDto,
    description:
      'Of all keys but those of the sandbox, with the reason and without their texts. It needs the scope `admin`.',
  })
  @SendsList()
  failed(@Res() _: Response): List {
    return this.failures.list();
  }

  @Get('deliveries')
  @ApiLists('listKeyDeliveries', 'List the webhook deliveries, newest first', {
    reply: KeyDeliveryDto,
    description: 'Of all keys, with the last try of each. It needs the scope `admin`.',
  })
  @SendsList()
  delivered(@ValidQuery() { status }: DeliveryQueryDto, @Res() _: Response): List {
    return this.deliveries.list(status);
  }

  @Post('deliveries/:id/redeliver')
  @ApiCreates('redeliverOfKey', 'Try a delivery of any key again now', {
    reply: KeyDeliveryDto,
    errors: [404],
    description:
      'Also one that succeeded or was given up. The receiver gets the same `webhook-id`. It needs the scope `admin`.',
  })
  redeliver(@Param('id') id: string): Promise<KeyDeliveryDto> {
    return this.deliveries.redeliver(id);
  }
}
