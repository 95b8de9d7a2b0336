import { createHash, createHmac } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

const region = 'us-east-1';
const bucket = 'pictures';
const accessKeyId = 'test-key';
const secretAccessKey = 'test-secret';
const keysPerPage = 3;
const environment = {
  STORAGE: 's3',
  S3_BUCKET: bucket,
  S3_REGION: region,
  S3_ACCESS_KEY_ID: accessKeyId,
  S3_SECRET_ACCESS_KEY: secretAccessKey,
};

/**
 * Misbehaviour: `reset` drops the connection, `breakOff` does so after half of an object, `elsewhere` is no store, and
 * `noToken` omits where a list continues.
 */
export type S3Trouble = 'deny' | 'unavailable' | 'silent' | 'reset' | 'breakOff' | 'elsewhere' | 'noToken';

interface S3Object {
  data: Buffer;
  modifiedAt: Date;
}

/** A small S3-compatible store that checks every signature and can be told to misbehave. */
export interface S3Server {
  /** Variables with which the service uses it. */
  env: Record<string, string>;
  objects: Map<string, S3Object>;
  /** How it misbehaves, and for how many more requests. */
  trouble(kind: S3Trouble | undefined, requests?: number): void;
  /** Such as `PUT pictures/key`, in order of arrival. */
  requests: string[];
  close(): Promise<void>;
}

/** With one empty bucket. */
export async function startS3(): Promise<S3Server> {
  const objects: S3Server['objects'] = new Map();
  const requests: string[] = [];
  let trouble: { kind: S3Trouble | undefined; left: number } = { kind: undefined, left: 0 };

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await buffer(request);
    const url = new URL(request.url ?? '', 'http://store');
    requests.push(`${request.method} ${url.pathname.slice(1)}`);
    const kind = trouble.left > 0 ? trouble.kind : undefined;
    if (kind) trouble.left--;
    if (kind === 'silent') return;
    if (kind === 'reset') return void request.socket.resetAndDestroy();
    if (kind === 'elsewhere') return void response.writeHead(404).end('<html>Not found</html>');
    if (kind === 'unavailable') return fail(response, 503, 'SlowDown');
    if (kind === 'deny' || !isSigned(request, url, body)) return fail(response, 403, 'AccessDenied');
    const [, name, ...rest] = url.pathname.split('/');
    if (name !== bucket) return fail(response, 404, 'NoSuchBucket');
    const key = decodeURIComponent(rest.join('/'));
    if (key === '')
      return request.method === 'POST'
        ? removeMany(objects, request, body, response)
        : list(objects, url.searchParams, response, kind !== 'noToken');
    if (request.method === 'PUT') return put(objects, key, request, body, response);
    if (request.method === 'DELETE') return void (objects.delete(key), response.writeHead(204).end());
    const object = objects.get(key);
    if (!object) return fail(response, 404, 'NoSuchKey');
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? [];
    if (first !== undefined) return sendPart(object, response, Number(first), Number(last) + 1);
    setAskedHeaders(response, url);
    send(object, response, request.method === 'HEAD' ? 'head' : kind === 'breakOff' ? 'half' : 'whole');
  };

  const server = createServer((request, response) => {
    // A client that disconnects early is no failure of the test.
    answer(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    env: { ...environment, S3_ENDPOINT: `http://127.0.0.1:${(server.address() as AddressInfo).port}` },
    objects,
    requests,
    trouble: (kind, left = Infinity) => void (trouble = { kind, left }),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The headers that a presigned URL asks for. */
function setAskedHeaders(response: ServerResponse, { searchParams }: URL): void {
  for (const name of ['content-type', 'cache-control']) {
    const asked = searchParams.get(`response-${name}`);
    if (asked !== null) response.setHeader(name, asked);
  }
}

function put(
  objects: S3Server['objects'],
  key: string,
  { headers }: IncomingMessage,
  data: Buffer,
  response: ServerResponse,
): void {
  if (data.length !== Number(headers['content-length'])) return fail(response, 400, 'IncompleteBody');
  objects.set(key, { data, modifiedAt: new Date() });
  response.writeHead(200, { etag: etagOf(data) }).end();
}

function sendPart({ data }: S3Object, response: ServerResponse, from: number, to: number): void {
  const part = data.subarray(from, to);
  const headers = { 'content-length': part.length, 'content-range': `bytes ${from}-${to - 1}/${data.length}` };
  response.writeHead(206, headers).end(part);
}

function send({ data, modifiedAt }: S3Object, response: ServerResponse, part: 'head' | 'half' | 'whole'): void {
  response.writeHead(200, {
    'content-length': data.length,
    etag: etagOf(data),
    'last-modified': modifiedAt.toUTCString(),
  });
  if (part === 'head') response.end();
  else if (part === 'whole') response.end(data);
  else response.write(data.subarray(0, data.length / 2), () => response.destroy());
}

/** Older releases of MinIO and Ceph refuse requests without this header, which the SDK does not send. */
function removeMany(
  objects: S3Server['objects'],
  { headers }: IncomingMessage,
  body: Buffer,
  response: ServerResponse,
): void {
  if (headers['content-md5'] !== createHash('md5').update(body).digest('base64'))
    return fail(response, 400, 'MissingContentMD5');
  for (const [, key] of body.toString().matchAll(/<Key>([^<]*)<\/Key>/g)) objects.delete(key);
  xml(response, '<DeleteResult/>');
}

function list(objects: S3Server['objects'], query: URLSearchParams, response: ServerResponse, saysNext: boolean): void {
  const after = query.get('continuation-token') ?? '';
  const keys = [...objects.keys()].filter((key) => key.startsWith(query.get('prefix') ?? '') && key > after).sort();
  const page = keys.slice(0, keysPerPage);
  const contents = page.map((key) => {
    const { data, modifiedAt } = objects.get(key)!;
    return `<Contents><Key>${key}</Key><Size>${data.length}</Size><LastModified>${modifiedAt.toISOString()}</LastModified></Contents>`;
  });
  const isTruncated = keys.length > page.length;
  const next = isTruncated && saysNext ? `<NextContinuationToken>${page.at(-1)}</NextContinuationToken>` : '';
  const more = `<IsTruncated>${isTruncated}</IsTruncated>${next}`;
  xml(response, `<ListBucketResult>${contents.join('')}${more}</ListBucketResult>`);
}

/** Signature version 4 of the whole request, or of a URL for some time. */
function isSigned(request: IncomingMessage, url: URL, body: Buffer): boolean {
  const presigned = url.searchParams.get('X-Amz-Signature');
  if (presigned !== null) return request.method === 'GET' && isPresigned(request, url, presigned);
  const { authorization = '', 'x-amz-content-sha256': bodyHash = '', 'x-amz-date': date = '' } = request.headers;
  const match =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/.exec(
      authorization,
    );
  if (!match || typeof bodyHash !== 'string' || typeof date !== 'string') return false;
  const [, id, day, place, signedHeaders, signature] = match;
  if (id !== accessKeyId || place !== region) return false;
  if (bodyHash !== 'UNSIGNED-PAYLOAD' && bodyHash !== createHash('sha256').update(body).digest('hex')) return false;
  const names = signedHeaders.split(';');
  if (!names.includes('host') || !names.includes('x-amz-content-sha256')) return false;
  return signatureOf(request, url, { day, date, signedHeaders, bodyHash }) === signature;
}

function isPresigned(request: IncomingMessage, url: URL, signature: string): boolean {
  const value = (name: string): string => url.searchParams.get(`X-Amz-${name}`) ?? '';
  const date = value('Date');
  const day = date.slice(0, 8);
  const madeAt = Date.parse(date.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'));
  const age = (Date.now() - madeAt) / 1000;
  if (value('Credential') !== `${accessKeyId}/${day}/${region}/s3/aws4_request`) return false;
  if (!(age > -60 && age < Number(value('Expires')))) return false;
  const unsigned = new URL(url);
  unsigned.searchParams.delete('X-Amz-Signature');
  const rest = { day, date, signedHeaders: value('SignedHeaders'), bodyHash: 'UNSIGNED-PAYLOAD' };
  return signatureOf(request, unsigned, rest) === signature;
}

function signatureOf(
  { method, headers }: IncomingMessage,
  url: URL,
  { day, date, signedHeaders, bodyHash }: Record<'day' | 'date' | 'signedHeaders' | 'bodyHash', string>,
): string {
  const encode = (text: string): string =>
    encodeURIComponent(text).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
  const query = [...url.searchParams].map(([name, value]) => `${encode(name)}=${encode(value)}`).sort();
  const canonical = [
    method,
    url.pathname,
    query.join('&'),
    ...signedHeaders.split(';').map((name) => `${name}:${String(headers[name]).trim()}`),
    '',
    signedHeaders,
    bodyHash,
  ].join('\n');
  const scope = `${day}/${region}/s3/aws4_request`;
  const toSign = ['AWS4-HMAC-SHA256', date, scope, createHash('sha256').update(canonical).digest('hex')].join('\n');
  const signingKey = [day, region, 's3', 'aws4_request'].reduce<string | Buffer>(
    (secret, part) => createHmac('sha256', secret).update(part).digest(),
    `AWS4${secretAccessKey}`,
  );
  return createHmac('sha256', signingKey).update(toSign).digest('hex');
}

function etagOf(data: Buffer): string {
  return `"${createHash('md5').update(data).digest('hex')}"`;
}

function xml(response: ServerResponse, body: string): void {
  response.writeHead(200, { 'content-type': 'application/xml' }).end(`<?xml version="1.0"?>${body}`);
}

function fail(response: ServerResponse, status: number, code: string): void {
  response
    .writeHead(status, { 'content-type': 'application/xml' })
    .end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>as told</Message></Error>`);
}
