import { SetMetadata } from '@nestjs/common';

const secretsKey = 'secrets';

/**
 * Names the fields of a route's answer that are never stored, as answers under an `Idempotency-Key` are: a
 * replay has null there.
 */
export const AnswersSecrets = (...fields: string[]) => SetMetadata(secretsKey, fields);

/** An answer as it may be stored. */
export function withoutSecrets(route: object, body: unknown): unknown {
  const fields = Reflect.getMetadata(secretsKey, route) as string[] | undefined;
  if (!fields) return body;
  return { ...(body as object), ...Object.fromEntries(fields.map((field) => [field, null])) };
}
