import {
  CreatedKeyDto,
  CreateKeyDto,
  DeletedDto,
  KeyDto,
  RotatedKeyDto,
  RotatedWebhookSecretDto,
  RotateKeyDto,
  UpdateKeyDto,
  UsageDto,
  UsageQueryDto,
} from '@app/domain/http';
import { Controller, Delete, Get, Param, Patch, Post, Res } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import { NeedsScope, OwnerId } from '../http/caller.decorator';
import { ApiChanges, ApiCreates, ApiFinds, ApiLists, ApiReads, ApiRemoves } from '../docs/operation';
import { ValidBody } from '../http/body';
import { SendsList } from '../http/list.interceptor';
import { AnswersSecrets, LocatedAt, Weighs } from '../http/route.decorators';
import type { List } from '../http/list';
import { ValidQuery } from '../http/query';
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

/** API keys. */
@ApiTags('Keys')
@Controller('v1/keys')
@NeedsScope('admin')
export class KeysController {
  constructor(private readonly keys: KeysService) {}

  @Post()
  @AnswersSecrets('token', 'webhook_secret')
  @LocatedAt('/v1/keys')
  @ApiCreates('createKey', 'Make an API key', {
    body: CreateKeyDto,
    reply: CreatedKeyDto,
    isLocated: true,
    description:
      'The answer is the only one with its token and the secret of its webhooks. It needs the scope `admin`.',
  })
  create(@ValidBody(CreateKeyDto) dto: CreateKeyDto): Promise<CreatedKeyDto> {
    return this.keys.create(dto);
  }

  @Get()
  @ApiLists('listKeys', 'List the API keys, newest first', {
    reply: KeyDto,
    description: 'Revoked ones included. It needs the scope `admin`.',
  })
  @SendsList()
  findAll(@Res() _: Response): List {
    return this.keys.list();
  }

  @Get(':id')
  @Weighs('light')
  @ApiFinds('getKey', 'Get an API key', {
    reply: KeyDto,
    description: 'Without its token and secret. A revoked one can be read too. It needs the scope `admin`.',
  })
  findOne(@Param('id') id: string): Promise<KeyDto> {
    return this.keys.findOne(id);
  }

  @Patch(':id')
  @ApiChanges('updateKey', 'Change the name and the limits of an API key', {
    body: UpdateKeyDto,
    reply: KeyDto,
    errors: [409],
    description: 'What is left out, or null, stays as it is. It needs the scope `admin`.',
  })
  update(@Param('id') id: string, @ValidBody(UpdateKeyDto) dto: UpdateKeyDto): Promise<KeyDto> {
    return this.keys.update(id, dto);
  }

  @Post(':id/rotate')
  @AnswersSecrets('token')
  @ApiCreates('rotateKey', 'Give an API key a new token', {
    body: RotateKeyDto,
    reply: RotatedKeyDto,
    bodyIsOptional: true,
    errors: [404],
    description:
      'The previous token stays valid for `grace_hours`, or until the next rotation: the newest token and the one before it are valid. It needs the scope `admin`.',
  })
  rotate(
    @Param('id') id: string,
    @ValidBody(RotateKeyDto, { isOptional: true }) dto: RotateKeyDto,
  ): Promise<RotatedKeyDto> {
    return this.keys.rotate(id, dto.grace_hours);
  }

  @Post(':id/rotate-webhook-secret')
  @AnswersSecrets('webhook_secret')
  @ApiCreates('rotateWebhookSecret', 'Give an API key a new secret for its webhooks', {
    body: RotateKeyDto,
    reply: RotatedWebhookSecretDto,
    bodyIsOptional: true,
    errors: [404],
    description:
      'Webhooks are signed with both secrets for `grace_hours`, or until the next rotation. It needs the scope `admin`.',
  })
  rotateWebhookSecret(
    @Param('id') id: string,
    @ValidBody(RotateKeyDto, { isOptional: true }) dto: RotateKeyDto,
  ): Promise<RotatedWebhookSecretDto> {
    return this.keys.rotateWebhookSecret(id, dto.grace_hours);
  }

  @Delete(':id')
  @ApiRemoves('revokeKey', 'Revoke an API key', {
    errors: [409],
    description:
      'Its connections are closed and its waiting Generations and Prompts canceled; what it owns stays. A key cannot revoke itself. It needs the scope `admin`.',
  })
  async revoke(@OwnerId() ownerId: string, @Param('id') id: string): Promise<DeletedDto> {
    await this.keys.revoke(ownerId, id);
    return DeletedDto.of('Key', id);
  }

  @Get(':id/usage')
  @ApiFinds('listKeyUsage', 'Pictures, steps and compute seconds of an API key', {
    reply: UsageDto,
    replyIsArray: true,
    errors: [400],
    description: 'As `GET /v1/usage` has them of the key that asks. It needs the scope `admin`.',
  })
  usage(@Param('id') id: string, @ValidQuery() query: UsageQueryDto): Promise<UsageDto[]> {
    return this.keys.usage(id, query);
  }
}
