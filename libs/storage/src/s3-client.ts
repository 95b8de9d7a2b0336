import { createRequire } from 'node:module';
import type * as Sdk from '@aws-sdk/client-s3';
import type { S3Config } from '@app/config';

const connectionTimeoutMs = 3_000;
/** A request fails after this long without a byte. */
const idleTimeoutMs = 20_000;
export const tries = 3;

const silent = { debug: nothing, info: nothing, warn: nothing, error: nothing };

export interface OpenedS3 {
  sdk: typeof Sdk;
  client: Sdk.S3Client;
}

/** Loads the SDK. */
export function clientOf({ endpoint, region, forcePathStyle, accessKeyId, secretAccessKey }: S3Config): OpenedS3 {
  // The SDK's warning about the version of Node is not for the log.
  process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED = 'true';
  const sdk = createRequire(__filename)('@aws-sdk/client-s3') as typeof Sdk;
  const client = new sdk.S3Client({
    region,
    forcePathStyle,
    credentials: { accessKeyId, secretAccessKey },
    // Many compatible stores do not support these checksums or the trailers that carry them.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    maxAttempts: tries,
    // Errors are thrown, and logged where they are caught.
    logger: silent,
    requestHandler: { connectionTimeout: connectionTimeoutMs, socketTimeout: idleTimeoutMs },
    ...(endpoint && { endpoint }),
  });
  return { sdk, client };
}

function nothing(): void {
  // Nothing is said.
}
