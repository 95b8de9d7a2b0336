import type { ApiPropertyOptions } from '@nestjs/swagger';
import { keyFacts } from './key-facts';
import { ApiProperty } from '@nestjs/swagger';
import type { ApiKey, ApiKeyScope } from './api-key';
import { apiKeyScopes } from './api-key';

/** A limit of a key, as responses have it. */
const shownLimit = (description: string): ApiPropertyOptions => ({
  type: 'integer',
  nullable: true,
  description: `${description}; 0: no limit, null: what the service has for all keys.`,
});

/** An API key, without anything that is secret. */
export class KeyDto {
  @ApiProperty({ type: String, minLength: 24, maxLength: 24 })
  id: string;

  @ApiProperty({ type: String, description: 'The public beginning of its token.', example: 'dr_0123456789ab' })
  prefix: string;

  @ApiProperty({ type: String, example: 'web shop' })
  name: string;

  @ApiProperty({
    enum: [...apiKeyScopes],
    enumName: 'KeyScope',
    isArray: true,
    description: 'What it may do: `write` includes `read`, and `admin` both.',
  })
  scopes: ApiKeyScope[];

  @ApiProperty({ type: Boolean, description: 'Whether no engine draws for it, and it gets marked pictures at once.' })
  sandbox: boolean;

  @ApiProperty(shownLimit('Requests per minute'))
  rate_limit_per_minute: number | null;

  @ApiProperty(shownLimit('Generations and Prompts that may wait'))
  max_queued: number | null;

  @ApiProperty(shownLimit('Generations and Prompts that may be drawn at once'))
  max_concurrent: number | null;

  @ApiProperty(shownLimit('Megabytes of pictures and weights'))
  max_storage_mb: number | null;

  @ApiProperty({
    type: 'integer',
    nullable: true,
    description: 'Days after which finished records are deleted; null: never.',
  })
  retention_days: number | null;

  @ApiProperty({ type: String, format: 'date-time' })
  created_at: string;

  @ApiProperty({ type: String, format: 'date-time', nullable: true, description: 'To the minute.', example: null })
  last_used_at: string | null;

  @ApiProperty({
    type: String,
    format: 'date-time',
    nullable: true,
    description: 'When it was revoked.',
    example: null,
  })
  revoked_at: string | null;

  static from(key: ApiKey): KeyDto {
    return keyFacts(key);
  }
}

const tokenDescription = 'Shown only in this answer, and null when it is replayed under an Idempotency-Key.';

/** A key with its new secrets. */
export class CreatedKeyDto extends KeyDto {
  @ApiProperty({
    type: String,
    nullable: true,
    description: `What the key's owner sends. ${tokenDescription}`,
    example: 'dr_0123456789ab_ZmFrZWZha2VmYWtlZmFrZWZha2VmYWtlZmFrZWZha2U',
  })
  token: string | null;

  @ApiProperty({
    type: String,
    nullable: true,
    description: `What signs the key's webhooks. ${tokenDescription}`,
    example: 'whsec_ZmFrZWZha2VmYWtlZmFrZWZha2VmYWtlZmFrZWZha2U=',
  })
  webhook_secret: string | null;
}

/** A key with its new token. */
export class RotatedKeyDto extends KeyDto {
  @ApiProperty({
    type: String,
    nullable: true,
    description: `What the key's owner sends from now on. ${tokenDescription}`,
    example: 'dr_0123456789ab_ZmFrZWZha2VmYWtlZmFrZWZha2VmYWtlZmFrZWZha2U',
  })
  token: string | null;

  @ApiProperty({ type: String, format: 'date-time', description: 'Until when the previous token is accepted.' })
  previous_token_expires_at: string;
}

/** A key with the new secret of its webhooks. */
export class RotatedWebhookSecretDto extends KeyDto {
  @ApiProperty({
    type: String,
    nullable: true,
    description: `What signs the key's webhooks from now on. ${tokenDescription}`,
    example: 'whsec_ZmFrZWZha2VmYWtlZmFrZWZha2VmYWtlZmFrZWZha2U=',
  })
  webhook_secret: string | null;

  @ApiProperty({ type: String, format: 'date-time', description: 'Until when the previous secret signs as well.' })
  previous_webhook_secret_expires_at: string;
}
