import { limits } from '../common/limits';
import { BooleanField, NumberField, TextField } from '../fields/fields';
import { ArrayOfWordsField, CountOrWordField } from '../fields/fields-of-words';
import type { ApiKeyScope } from './api-key';
import { apiKeyScopes } from './api-key';
import { keyBounds } from './key-bounds';

type Limit = number | 'default';

/** A limit of a key, as requests have it: a count, 0 for no limit, or `default` for the service's. */
const LimitField = (description: string) =>
  CountOrWordField({
    description: `${description}; 0: no limit, "default": what the service has for all keys.`,
    min: 0,
    max: keyBounds.maxCount,
    word: 'default',
  });

/** For how long a key's finished records are kept, as requests have it. */
const RetentionField = () =>
  CountOrWordField({
    description: 'Days after which finished records of the key are deleted; "keep": never.',
    min: 1,
    max: keyBounds.maxRetentionDays,
    word: 'keep',
  });

/** The limits of a key, as requests have them. */
class KeyLimits {
  @LimitField('Requests per minute')
  rate_limit_per_minute?: Limit;

  @LimitField('Generations and Prompts that may wait')
  max_queued?: Limit;

  @LimitField('Generations and Prompts that may be drawn at once')
  max_concurrent?: Limit;

  @LimitField('Megabytes of pictures and weights')
  max_storage_mb?: Limit;

  @RetentionField()
  retention_days?: number | 'keep';
}

/** Body of `POST /v1/keys`. */
export class CreateKeyDto extends KeyLimits {
  @TextField({ description: 'What it is for.', maxLength: limits.nameLength, word: true, example: 'web shop' })
  name: string;

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
    optional: true,
    example: 'web shop',
  })
  name?: string;
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
