import { createRequire } from 'node:module';
import type * as Presigner from '@aws-sdk/s3-request-presigner';
import type { S3Config } from '@app/config';
import { clientOf } from './s3-client';

/** What is read through a URL. */
export interface PresignedPicture {
  storageKey: string;
  contentType: string;
  /** The last part of the picture's own URL; the parameter `pictureParameter` has it. */
  file: string;
}

interface Opened {
  /** The bucket's. */
  base: URL;
  presigner: Presigner.S3RequestPresigner;
}

/** URLs by which anyone reads an object of the bucket for a while, without asking the service. */
export class PresignedUrls {
  private opened?: Promise<Opened>;

  /** @param parameter the parameter of a URL that names the picture; stores pass over those that begin with `x-` */
  constructor(
    private readonly config: S3Config,
    private readonly seconds: number,
    private readonly parameter: string,
  ) {}

  /** Tenths of a millisecond. The cache's lifetime is that of the URL, which has another signature next time. */
  async of({ storageKey, contentType, file }: PresignedPicture): Promise<string> {
    const { base, presigner } = await (this.opened ??= this.open());
    const path = base.pathname + storageKey;
    const signed = await presigner.presign(
      {
        method: 'GET',
        protocol: base.protocol,
        hostname: base.hostname,
        ...(base.port && { port: Number(base.port) }),
        path,
        headers: { host: base.host },
        query: {
          'response-content-type': contentType,
          'response-cache-control': `private, max-age=${this.seconds}, immutable`,
          [this.parameter]: file,
        },
      },
      { expiresIn: this.seconds },
    );
    return `${base.origin}${path}?${new URLSearchParams(signed.query as Record<string, string>).toString()}`;
  }

  private async open(): Promise<Opened> {
    const { endpoint, publicEndpoint = endpoint, bucket: Bucket } = this.config;
    const { sdk, client } = clientOf({ ...this.config, ...(publicEndpoint && { endpoint: publicEndpoint }) });
    const load = createRequire(__filename) as (name: string) => typeof Presigner;
    const { getSignedUrl, S3RequestPresigner } = load('@aws-sdk/s3-request-presigner');
    // The SDK knows where a bucket is.
    const key = 'x';
    const url = new URL(await getSignedUrl(client, new sdk.GetObjectCommand({ Bucket, Key: key })));
    const base = new URL(url.pathname.slice(0, -key.length), url.origin);
    return { base, presigner: new S3RequestPresigner({ ...client.config }) };
  }
}
