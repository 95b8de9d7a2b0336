import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { type PictureReport, PictureSigner, PictureVerifier, type Signing } from '@app/credentials';
import sharp from 'sharp';
import type { PictureParameters } from '../../apps/inference/src/pictures/image-encoder';
import { claimsOf, type GivenPicture } from '../../apps/inference/src/pictures/picture-claims';
import { noTrust } from './certificates';

type Format = 'png' | 'jpeg' | 'webp';

export const recordId = 'Vb3kP0tTq2m8XcZr5LwYd1Ha';
const parameters = { prompt: 'a star', negative_prompt: 'rain', model: 'shapes', model_hash: 'abcdef' };

interface Asked {
  format?: Format;
  given?: GivenPicture[];
  /** More of its parameters. */
  more?: Partial<PictureParameters>;
  withPrompt?: boolean;
}

/** A picture that nobody has signed. */
export const plainPicture = (format: Format = 'png'): Promise<Buffer> =>
  sharp({ create: { width: 64, height: 48, channels: 3, background: '#2060e0' } })
    .toFormat(format)
    .toBuffer();

/** The same with a byte of its pixels changed. */
export function altered(picture: Uint8Array): Buffer {
  const bytes = Buffer.from(picture);
  bytes[bytes.length - 30] ^= 1;
  return bytes;
}

/** Calls `work`, in which processes that read pictures believe that it is so many days later. */
export async function inDays<T>(days: number, folder: string, work: () => T | Promise<T>): Promise<T> {
  const usual = PictureVerifier.processFile;
  PictureVerifier.processFile = join(folder, `in-${days}-days.cjs`);
  writeFileSync(
    PictureVerifier.processFile,
    `const { now } = Date;
    Date.now = () => now() + ${days * 86_400_000};
    require(${JSON.stringify(usual)});`,
  );
  try {
    return await work();
  } finally {
    PictureVerifier.processFile = usual;
  }
}

/** A folder, and what signs and reads pictures there; it ends with the suite. */
export function signingSite() {
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-credentials-'));
  const verifier = new PictureVerifier();
  const opened: PictureSigner[] = [];
  const servers: Server[] = [];
  afterAll(async () => {
    await Promise.all(opened.map((signer) => signer.close()));
    for (const server of servers) server.close();
    verifier.close();
    rmSync(folder, { recursive: true });
  });

  const signerOf = (signing: Signing): PictureSigner => {
    const signer = new PictureSigner(signing);
    opened.push(signer);
    return signer;
  };

  async function signed(signing: Signing | PictureSigner, asked: Asked = {}) {
    const { format = 'png', given = [], more = {}, withPrompt = false } = asked;
    const drawn = { id: recordId, index: 2, parameters: { ...parameters, ...more } as PictureParameters, given };
    const file = { bytes: await plainPicture(format), type: `image/${format}` };
    const signer = signing instanceof PictureSigner ? signing : signerOf(signing);
    return signer.sign('somebody', { ...file, ...claimsOf(drawn, withPrompt) });
  }

  /** @returns its path */
  function written(name: string, bytes: Uint8Array): string {
    writeFileSync(join(folder, name), bytes);
    return join(folder, name);
  }

  const verify = (bytes: Uint8Array, type = 'image/png', own = noTrust, by = verifier): Promise<PictureReport> =>
    by.verify('somebody', { path: written('picture', bytes), type, own });

  /** A server that answers a body with what is made of it. */
  async function serve(answer: (body: Buffer, response: ServerResponse) => Buffer | undefined): Promise<string> {
    const server = createServer((request, response) => {
      void buffer(request).then((body) => {
        const bytes = answer(body, response);
        if (!response.headersSent) response.writeHead(bytes ? 200 : 500).end(bytes);
      });
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  return { folder, signerOf, signed, written, verify, serve };
}
