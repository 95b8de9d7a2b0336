import { isDeepStrictEqual } from 'node:util';
import type { OpenAPIObject } from '@nestjs/swagger';

export type Responses = NonNullable<NonNullable<OpenAPIObject['components']>['responses']>;
export type Operation = NonNullable<OpenAPIObject['paths'][string]['get']>;

/**
 * The errors of a status are the same on all routes, and are documented once.
 * @throws Error if two routes document a status differently
 */
export function shareErrors({ operationId, responses }: Operation, shared: Responses): void {
  for (const [status, response] of Object.entries(responses))
    if (response && 'content' in response && response.content?.['application/problem+json']) {
      const name = `Problem${status}`;
      if (!isDeepStrictEqual((shared[name] ??= response), response))
        throw new Error(`${operationId} documents the error ${status} otherwise than another route.`);
      responses[status] = { $ref: `#/components/responses/${name}` };
    }
}
