import { ApiProperty, type ApiPropertyOptions } from '@nestjs/swagger';
import {
  BooleanField,
  EnumField,
  type FieldOptions,
  NumberField,
  ownField,
  smallField,
  TextField,
} from '../fields/fields';
import { shown } from '../fields/text-rules';
import { limits } from '../common/limits';
import { keyBounds, keyFacts } from './key-changes';
import { type ApiKey, type ApiKeyScope, apiKeyScopes, type KeyFilter, keyFilters } from './api-key';
import { Id, IntegerOrNull, Text, TextOrNull, Time, TimeOrNull, Word, YesNo } from '../fields/fields-of-answers';

/** An array of one or more of some words, each once. */
export function ArrayOfWordsField(options: FieldOptions & { values: readonly string[]; name: string }) {
  const { values, name, ...rest } = options;
  const schema = {
    enum: [...values],
    enumName: name,
    isArray: true,
    minItems: 1,
    maxItems: values.length,
    uniqueItems: true,
  } as Parameters<typeof ownField>[1];
  const words = values.join(', ');
  return ownField(rest, schema, (value) => {
    if (!Array.isArray(value)) return `must be an array of ${words}, got ${shown(value)}`;
    if (value.length < 1 || value.length > values.length) return `must have 1 to ${values.length} elements`;
    const sent = value as unknown[];
    const wrong = sent.findIndex((word) => !values.includes(word as string));
    if (wrong >= 0) return `must have only ${words}; element ${wrong} is ${shown(sent[wrong])}`;
    return new Set(sent).size < sent.length ? 'must have each word once' : undefined;
  });
}

/** An integer from `min` to `max`, or the one word that means something else. It may be left out. */
export function CountOrWordField({
  min,
  max,
  word,
  ...options
}: FieldOptions & { min: number; max: number; word: string }) {
  const schema = {
    oneOf: [
      { type: 'integer', minimum: min, maximum: max },
      { type: 'string', enum: [word] },
    ],
  } as Parameters<typeof smallField>[1];
  return smallField({ ...options, optional: true }, schema, (value) => {
    const isCount = typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max;
    return isCount || value === word
      ? undefined
      : `must be an integer from ${min} to ${max}, or "${word}", got ${shown(value)}`;
  });
}

const shownLimit = (description: string): ApiPropertyOptions => ({
  type: 'integer',
  nullable: true,
  description: `${description}; 0: no limit, null: what the service has for all keys.`,
});

const keepsUploads =
  'Whether uploads that only a training needed stay until its Fine-Tune is deleted; otherwise they go as it ends';

const filters =
  'What becomes of a picture that the installed safety checker flags: `off`, it is not looked at; `report`, the record names it in `flagged`; `block`, it is not stored, and counted in `filtered`';

/** An API key, without anything that is secret. */
export class KeyDto {
  @Id() id: string;
  @Text('The public beginning of its token.', { example: 'dr_0123456789ab' }) prefix: string;
  @Text('', { example: 'web shop' }) name: string;
  @TextOrNull('Name of its account, whose keys share their records; null: it is alone in its own.', { example: 'shop' })
  account: string | null;

  @ApiProperty({
    enum: [...apiKeyScopes],
    enumName: 'KeyScope',
    isArray: true,
    description: 'What it may do: `write` includes `read`, and `admin` both.',
  })
  scopes: ApiKeyScope[];

  @YesNo('Whether no engine draws for it, and it gets marked pictures at once.') sandbox: boolean;
  @ApiProperty(shownLimit('Requests per minute')) rate_limit_per_minute: number | null;
  @ApiProperty(shownLimit('Generations and Prompts that may wait')) max_queued: number | null;
  @ApiProperty(shownLimit('Generations and Prompts that may be drawn at once')) max_concurrent: number | null;
  @ApiProperty(shownLimit('Megabytes of pictures and weights')) max_storage_mb: number | null;
  @IntegerOrNull('Days after which finished records are deleted; null: never.') retention_days: number | null;
  @YesNo(`${keepsUploads}.`) keep_training_uploads: boolean;
  @Word(keyFilters, 'KeyFilter', `${filters}.`) filter: KeyFilter;
  @Time() created_at: string;
  @TimeOrNull('To the minute.', { example: null }) last_used_at: string | null;
  @TimeOrNull('When it was revoked.', { example: null }) revoked_at: string | null;

  static from(key: ApiKey): KeyDto {
    return keyFacts(key);
  }
}

const tokenDescription = 'Shown only in this answer, and null when it is replayed under an Idempotency-Key.';

/** A key with its new secrets. */
export class CreatedKeyDto extends KeyDto {
  @TextOrNull(`What the key's owner sends. ${tokenDescription}`, {
    example: 'dr_0123456789ab_ZmFrZWZha2VmYWtlZmFrZWZha2VmYWtlZmFrZWZha2U',
  })
  token: string | null;

  @TextOrNull(`What signs the key's webhooks. ${tokenDescription}`, {
    example: 'whsec_ZmFrZWZha2VmYWtlZmFrZWZha2VmYWtlZmFrZWZha2U=',
  })
  webhook_secret: string | null;
}

/** A key with its new token. */
export class RotatedKeyDto extends KeyDto {
  @TextOrNull(`What the key's owner sends from now on. ${tokenDescription}`, {
    example: 'dr_0123456789ab_ZmFrZWZha2VmYWtlZmFrZWZha2VmYWtlZmFrZWZha2U',
  })
  token: string | null;

  @Time('Until when the previous token is accepted.') previous_token_expires_at: string;
}

/** A key with the new secret of its webhooks. */
export class RotatedWebhookSecretDto extends KeyDto {
  @TextOrNull(`What signs the key's webhooks from now on. ${tokenDescription}`, {
    example: 'whsec_ZmFrZWZha2VmYWtlZmFrZWZha2VmYWtlZmFrZWZha2U=',
  })
  webhook_secret: string | null;

  @Time('Until when the previous secret signs as well.') previous_webhook_secret_expires_at: string;
}

type Limit = number | 'default';

/** A limit of a key, as requests have it: a count, 0 for no limit, or `default` for the service's. */
const LimitField = (description: string) =>
  CountOrWordField({
    description: `${description}; 0: no limit, "default": what the service has for all keys.`,
    min: 0,
    max: keyBounds.maxCount,
    word: 'default',
  });

const RetentionField = () =>
  CountOrWordField({
    description: 'Days after which finished records of the key are deleted; "keep": never.',
    min: 1,
    max: keyBounds.maxRetentionDays,
    word: 'keep',
  });

class KeyLimits {
  @LimitField('Requests per minute') rate_limit_per_minute?: Limit;
  @LimitField('Generations and Prompts that may wait') max_queued?: Limit;
  @LimitField('Generations and Prompts that may be drawn at once') max_concurrent?: Limit;
  @LimitField('Megabytes of pictures and weights') max_storage_mb?: Limit;
  @RetentionField() retention_days?: number | 'keep';
  @BooleanField({ description: `${keepsUploads}.`, optional: true }) keep_training_uploads?: boolean;
  @EnumField({ description: `${filters}.`, values: keyFilters, name: 'KeyFilter', optional: true }) filter?: KeyFilter;
}

/** Body of `POST /v1/keys`. */
export class CreateKeyDto extends KeyLimits {
  @TextField({
    description: 'What it is for.',
    maxLength: limits.nameLength,
    word: true,
    printable: true,
    example: 'web shop',
  })
  name: string;

  @TextField({
    description:
      'The account that it joins, or begins: its keys share Fine-Tunes, Collections, uploads, Generations and Prompts. Without one it is alone in its own.',
    maxLength: limits.nameLength,
    word: true,
    printable: true,
    optional: true,
    example: 'shop',
  })
  account?: string;

  @ArrayOfWordsField({
    description: 'What it may do: `write` includes `read`, and `admin` both; `["write"]` when left out.',
    values: apiKeyScopes,
    name: 'KeyScope',
    optional: true,
  })
  scopes?: ApiKeyScope[];

  @BooleanField({
    description: 'Whether no engine draws for it, and it gets marked pictures at once.',
    optional: true,
    default: false,
  })
  sandbox?: boolean;
}

/** Body of `PATCH /v1/keys/:id`: what is left out, or null, stays. */
export class UpdateKeyDto extends KeyLimits {
  @TextField({
    description: 'What it is for.',
    maxLength: limits.nameLength,
    word: true,
    printable: true,
    optional: true,
    example: 'web shop',
  })
  name?: string;

  @TextField({
    description: 'A name for the account that it is alone in, so that new keys can join. It is given once.',
    maxLength: limits.nameLength,
    word: true,
    printable: true,
    optional: true,
    example: 'shop',
  })
  account?: string;
}

/** Body of `POST /v1/keys/:id/rotate` and `…/rotate-webhook-secret`. */
export class RotateKeyDto {
  @NumberField({
    description: 'For how many hours the previous token or secret stays valid.',
    min: 0,
    max: keyBounds.graceHours.max,
    optional: true,
    default: keyBounds.graceHours.default,
  })
  grace_hours?: number;
}
