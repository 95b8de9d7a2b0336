import { createPrivateKey, sign } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import {
  ownCertificates,
  type PictureReport,
  PictureSigner,
  PictureVerifier,
  type Signing,
  sourceTypes,
} from '@app/credentials';
import sharp from 'sharp';
import { claimsOf, type GivenPicture } from '../../apps/inference/src/pictures/picture-claims';
import { type DigitalSourceType, xmpOf } from '../../apps/inference/src/pictures/source-type';
import type { PictureParameters } from '../../apps/inference/src/pictures/image-encoder';
import { ensureOwnPair } from '../../apps/launcher/src/own-certificate';
import { keyKinds, noTrust, writePair } from '../support/certificates';
import { writeTimeStampServer } from '../support/time-stamp-server';

const recordId = 'Vb3kP0tTq2m8XcZr5LwYd1Ha';
const parameters = {
  ...{ prompt: 'a star over Berlin', negative_prompt: null, model: 'shapes', model_hash: 'abcdef' },
} as PictureParameters;

const named = (path: string) => ({ path, isNamed: true });

describe(PictureSigner.name, () => {
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
  const plain = (format: 'png' | 'jpeg' | 'webp' = 'png'): Promise<Buffer> =>
    sharp({ create: { width: 64, height: 48, channels: 3, background: '#2060e0' } })
      .toFormat(format)
      .toBuffer();
  const verify = (bytes: Uint8Array, type = 'image/png', own = noTrust, by = verifier): Promise<PictureReport> => {
    const path = join(folder, 'picture');
    writeFileSync(path, bytes);
    return by.verify('somebody', { path, type, own });
  };
  /** Reads pictures as one will do in so many days. */
  function verifierIn(days: number): PictureVerifier {
    const usual = PictureVerifier.processFile;
    PictureVerifier.processFile = join(folder, `in-${days}-days.cjs`);
    writeFileSync(
      PictureVerifier.processFile,
      `const { now } = Date;
      Date.now = () => now() + ${days * 86_400_000};
      require(${JSON.stringify(usual)});`,
    );
    const later = new PictureVerifier();
    PictureVerifier.processFile = usual;
    return later;
  }

  async function signed(
    signing: Signing,
    { format = 'png', given = [] }: { format?: 'png' | 'jpeg' | 'webp'; given?: GivenPicture[] } = {},
  ) {
    const claims = claimsOf({ id: recordId, index: 2, parameters, given }, true);
    const file = { bytes: await plain(format), type: `image/${format}` };
    return signerOf(signing).sign('somebody', { ...file, ...claims });
  }

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

  it.each(['png', 'jpeg', 'webp'] as const)(
    'signs a %s with the pair that a service makes for itself',
    async (format) => {
      const pair = await ensureOwnPair(join(folder, 'own'), () => undefined);
      const { bytes } = await signed(pair, { format });
      expect(await verify(bytes, `image/${format}`)).toEqual({
        marked: true,
        source_type: 'trainedAlgorithmicMedia',
        credentials: {
          ...{
            state: 'valid',
            own: false,
            issuer: 'Darkroom (self-made)',
            signed_at: null,
            ingredients: [],
            problems: [],
          },
          actions: [
            {
              ...{ action: 'c2pa.created', source_type: 'trainedAlgorithmicMedia' },
              ...{ agent: 'shapes', agent_version: 'abcdef' },
            },
          ],
        },
        record: { id: recordId, index: 2 },
      });
      const [before, after] = [await plain(format), bytes].map((file) => sharp(file).raw().toBuffer());
      expect((await after).equals(await before)).toBe(true);
    },
  );

  it('keeps the pair that it has made, and makes another where that is damaged or has another key', async () => {
    const said: string[] = [];
    const ensure = () => ensureOwnPair(join(folder, 'kept'), (text) => said.push(text));
    const pair = await ensure();
    const certificate = readFileSync(pair.certificate, 'utf8');
    await ensure();
    expect(readFileSync(pair.certificate, 'utf8')).toBe(certificate);
    writeFileSync(pair.key, readFileSync((await writePair(folder, 'foreign')).key));
    await ensure();
    expect(readFileSync(pair.certificate, 'utf8')).not.toBe(certificate);
    await signerOf(pair).check();
    writeFileSync(pair.certificate, 'no PEM');
    await ensure();
    await signerOf(pair).check();
    const line = `Another certificate is made for Content Credentials: the one in ${join(folder, 'kept')}`;
    expect(said).toEqual([`${line} has another key.`, `${line} or its key is damaged.`]);
  });

  it.each(Object.keys(keyKinds) as (keyof typeof keyKinds)[])('signs with a key of %s', async (kind) => {
    const pair = await writePair(folder, kind, { kind });
    await signerOf(pair).check();
    const { credentials } = await verify((await signed(pair)).bytes);
    expect(credentials).toMatchObject({ state: 'valid', issuer: 'A tester', problems: [] });
  });

  it('knows what it has signed itself, also with a former certificate, and not what its authority vouches for', async () => {
    const [now, former, foreign] = await Promise.all(
      ['now', 'former', 'foreign'].map((name) => writePair(folder, name)),
    );
    const certificatesIn = (file: string): string[] =>
      readFileSync(file, 'utf8').match(/-----BEGIN[^]+?END CERTIFICATE-----/g)!;
    writeFileSync(
      former.key + '.pem',
      [...certificatesIn(former.certificate), certificatesIn(foreign.certificate)[1]].join('\n'),
    );
    const own = await ownCertificates({ ownCertificate: named(now.certificate), credentialsOwn: former.key + '.pem' });
    const pictures = [];
    for (const pair of [now, former, foreign]) pictures.push((await signed(pair)).bytes);
    const altered = Buffer.from(pictures[0]);
    altered[altered.length - 30] ^= 1;
    const found = [];
    for (const picture of [...pictures, altered]) found.push((await verify(picture, 'image/png', own)).credentials);
    expect(found.map(({ state, own: isOwn }) => [state, isOwn])).toEqual([
      ['valid', true],
      ['valid', true],
      ['valid', false],
      ['invalid', false],
    ]);
  });

  it('says which file of certificates is missing or damaged; only one that nobody names may be missing', async () => {
    const [path, damaged] = [join(folder, 'nowhere'), join(folder, 'damaged.pem')];
    writeFileSync(damaged, 'no PEM');
    const made = { path, isNamed: false };
    expect(await ownCertificates({ ownCertificate: made })).toEqual(noTrust);
    const saidOf = (files: Parameters<typeof ownCertificates>[0]) => ownCertificates(files).catch(String);
    const sentences = [
      await saidOf({ ownCertificate: named(path) }),
      await saidOf({ ownCertificate: { ...made, path: damaged } }),
      await saidOf({ ownCertificate: made, credentialsOwn: path }),
    ];
    expect(sentences).toEqual([
      'CredentialsError: The file of CREDENTIALS_CERTIFICATE cannot be read: ENOENT.',
      'CredentialsError: The file credentials/certificate.pem in DATA_DIR has no certificates in PEM.',
      'CredentialsError: The file of CREDENTIALS_OWN cannot be read: ENOENT.',
    ]);
  });

  it('says when a certificate has expired since, unless an authority says that it was signed before', async () => {
    const server = writeTimeStampServer(folder);
    const pair = await writePair(folder, 'ageing');
    const later = verifierIn(60);
    const [plainly, stamped] = [await signed(pair), await signed({ ...pair, timeStamp: await serve(server.answer) })];
    const altered = Buffer.from(plainly.bytes);
    altered[altered.length - 30] ^= 1;
    const own = await ownCertificates({ ownCertificate: named(pair.certificate) });
    const stateOf = async (bytes: Uint8Array, trust = own) => {
      const { state, own: isOwn } = (await verify(bytes, 'image/png', trust, later)).credentials;
      return [state, isOwn];
    };
    expect(await stateOf(plainly.bytes)).toEqual(['expired', true]);
    expect(await stateOf(altered)).toEqual(['invalid', false]);
    expect(await stateOf(stamped.bytes)).toEqual(['expired', true]);
    const clocks = readFileSync(server.authority, 'utf8');
    expect(await stateOf(stamped.bytes, { ...own, clocks })).toEqual(['valid', true]);
    later.close();
  });

  it('finds a byte that was changed after signing', async () => {
    const bytes = Buffer.from((await signed(await writePair(folder, 'changed'))).bytes);
    bytes[bytes.length - 30] ^= 1;
    const { credentials } = await verify(bytes);
    expect(credentials).toMatchObject({ state: 'invalid', problems: ['assertion.dataHash.mismatch'] });
  });

  it.each([
    ['in its XMP', 'trainedAlgorithmicMedia', [], 'trainedAlgorithmicMedia', true],
    ['in an action only', 'digitalCapture', ['trainedAlgorithmicMedia'], 'digitalCapture', true],
    [
      'before its last action',
      undefined,
      ['compositeWithTrainedAlgorithmicMedia', 'minorHumanEdits'],
      'minorHumanEdits',
      true,
    ],
    ['nowhere', 'digitalCapture', ['digitalCapture'], 'digitalCapture', false],
  ])('finds a mark of a model %s', async (_, inXmp, inActions, type, marked) => {
    const picture = sharp(await plain()).jpeg();
    const bytes = await (inXmp === undefined ? picture : picture.withXmp(xmpOf(inXmp as DigitalSourceType))).toBuffer();
    const actions = inActions.map((word, i) => ({
      action: i === 0 ? 'c2pa.created' : 'c2pa.edited',
      digitalSourceType: sourceTypes + word,
    }));
    const assertions = [{ label: 'c2pa.actions.v2', data: { actions } }];
    const manifest = { claim_generator_info: [{ name: 'test', version: '1' }], title: 'test', assertions };
    const order = { bytes, type: 'image/jpeg', manifest, ingredients: [] };
    const signer = signerOf(await writePair(folder, 'marks'));
    const file = actions.length === 0 ? bytes : (await signer.sign('somebody', order)).bytes;
    expect(await verify(file, 'image/jpeg')).toMatchObject({ marked, source_type: type });
  });

  it('keeps the credentials of the pictures that were given', async () => {
    const pair = await writePair(folder, 'given');
    const file = { bytes: (await signed(pair)).bytes, type: 'image/png' };
    const broken = Buffer.from(file.bytes);
    broken[broken.length - 30] ^= 1;
    const given = [
      { field: 'image', sha256: 'aa', credentials: file },
      { field: 'mask', sha256: 'bb' },
      { field: 'references[0]', sha256: 'cc', credentials: { ...file, bytes: broken } },
    ];
    const { source_type: type, credentials } = await verify((await signed(pair, { given })).bytes);
    expect(type).toBe('compositeWithTrainedAlgorithmicMedia');
    expect(credentials.state).toBe('valid');
    expect(credentials.actions.map(({ action }) => action)).toEqual(['c2pa.opened', 'c2pa.edited']);
    expect(credentials.ingredients).toEqual([
      { title: 'image', relationship: 'parentOf', state: 'valid' },
      { title: 'mask', relationship: 'inputTo', state: 'none' },
      { title: 'references[0]', relationship: 'inputTo', state: 'invalid' },
    ]);
  });

  it('leaves out the credentials of a given picture that cannot be read, no others, and says so', async () => {
    const pair = await writePair(folder, 'unreadable');
    const { bytes } = await signed(pair);
    const [whole, cut] = [bytes, bytes.subarray(0, 700)].map((file) => ({ bytes: file, type: 'image/png' }));
    const given = [
      { field: 'image', sha256: 'aa', credentials: cut },
      { field: 'mask', sha256: 'bb', credentials: whole },
    ];
    const made = await signed(pair, { given });
    expect(made.leftOut).toEqual([expect.stringMatching(/^image: ./)]);
    const { credentials } = await verify(made.bytes);
    const ingredients = [
      { title: 'image', state: 'none' },
      { title: 'mask', state: 'valid' },
    ];
    expect(credentials).toMatchObject({ state: 'valid', ingredients });
  });

  describe('with a file that harms its thread', () => {
    const usual = PictureSigner.threadFile;
    const [ends, dies, isFine, hangs] = [0, 1, 2, 3];
    const over = join(folder, 'over');
    beforeAll(() => {
      PictureSigner.threadFile = join(folder, 'thread.cjs');
      writeFileSync(
        PictureSigner.threadFile,
        `const { parentPort } = require('node:worker_threads');
        const { existsSync } = require('node:fs');
        parentPort.on('message', ({ id, order: { bytes, ingredients } }) => {
          const [file] = ingredients.flatMap(({ file }) => file ?? []);
          const failed = { error: 'It ends.', isOfSigner: false, isLast: true, ingredient: 'image' };
          if (file?.bytes.length === ${ends}) parentPort.postMessage({ id, ...failed });
          if (file && file.bytes.length <= ${dies}) process.exit(1);
          const timer = setInterval(() => {
            if (file?.bytes.length === ${hangs} && !existsSync(${JSON.stringify(over)})) return;
            clearInterval(timer);
            parentPort.postMessage({ id, bytes });
          }, 1);
        });`,
      );
    });
    afterAll(() => (PictureSigner.threadFile = usual));

    const orderOf = (size: number): Parameters<PictureSigner['sign']>[1] => ({
      ...{
        bytes: new Uint8Array(1),
        type: 'image/png',
        manifest: { claim_generator_info: [], title: '', assertions: [] },
      },
      ingredients: [
        {
          definition: { instance_id: 'image', title: 'image', relationship: 'parentOf' },
          ...(size >= 0 && { file: { bytes: new Uint8Array(size), type: 'image/png' } }),
        },
      ],
    });

    it('harms no other picture', async () => {
      const signer = signerOf({ certificate: '' });
      const sizes = [ends, isFine, -1, dies, isFine, -1, ends, isFine];
      const made = await Promise.all(sizes.map((size, i) => signer.sign(`owner ${i}`, orderOf(size))));
      const leftOut = [['image: It ends.'], ['image: The thread that signs has ended.']];
      expect(made.map((each) => each.leftOut)).toEqual(sizes.map((size) => leftOut[size]));
    });

    it('lets only its owner wait while it hangs', async () => {
      const signer = signerOf({ certificate: '' });
      const hanging = [hangs, hangs].map((size) => signer.sign('its owner', orderOf(size)));
      await signer.sign('another', orderOf(isFine));
      writeFileSync(over, '');
      // One that was given up would be signed without its file.
      expect((await Promise.all(hanging)).map(({ leftOut }) => leftOut)).toEqual([undefined, undefined]);
    });
  });

  it('does not blame a picture for a process that has ended', async () => {
    const usual = PictureVerifier.processFile;
    PictureVerifier.processFile = join(folder, 'process.cjs');
    writeFileSync(PictureVerifier.processFile, `process.send({ ready: true }, () => process.exit(1));`);
    const ending = new PictureVerifier();
    PictureVerifier.processFile = usual;
    const read = ending.verify('somebody', { path: join(folder, 'picture'), type: 'image/png', own: noTrust });
    await expect(read).rejects.toMatchObject({ name: 'WorkError', failure: 'died' });
  });

  it('asks no address that a picture names', async () => {
    const asked: Buffer[] = [];
    const url = await serve((body) => (asked.push(body), body));
    const xmp = `<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="" xmlns:dcterms="http://purl.org/dc/terms/" dcterms:provenance="${url}/manifest.c2pa"/></rdf:RDF></x:xmpmeta>`;
    const picture = await sharp(await plain('jpeg'))
      .withXmp(xmp)
      .jpeg()
      .toBuffer();
    expect((await verify(picture, 'image/jpeg')).credentials.state).toBe('none');
    const pair = await writePair(folder, 'addresses');
    await signed(pair, {
      given: [{ field: 'image', sha256: 'aa', credentials: { bytes: picture, type: 'image/jpeg' } }],
    });
    expect(asked).toEqual([]);
  });

  it.each([
    ['has expired', { days: [-30, -1] as [number, number] }, /has expired on 20/],
    ['is of tomorrow', { days: [1, 30] as [number, number] }, /is valid only from 20/],
    ['is for servers', { usage: '1.3.6.1.5.5.7.3.1' }, /does not hold: .*signingCredential\.invalid/],
  ])('says of a certificate that it %s', async (name, wanted, sentence) => {
    const signer = signerOf(await writePair(folder, name, wanted));
    await expect(signer.check()).rejects.toThrow(sentence);
  });

  it('signs no picture with a certificate that C2PA forbids, although it could at first', async () => {
    const pair = await writePair(folder, 'allowed at first');
    const signer = signerOf(pair);
    const order = {
      bytes: await plain(),
      type: 'image/png',
      ...claimsOf({ id: recordId, index: 0, parameters, given: [] }, false),
    };
    await signer.sign('somebody', order);
    const forbidden = await writePair(folder, 'forbidden', { usage: '1.3.6.1.5.5.7.3.1' });
    for (const part of ['key', 'certificate'] as const) writeFileSync(pair[part], readFileSync(forbidden[part]));
    await expect(signer.sign('somebody', order)).rejects.toThrow(/does not hold: .*signingCredential\.invalid/);
  });

  it('says of files what is wrong with them, and signs as soon as they are in order', async () => {
    const [pair, other] = [await writePair(folder, 'one'), await writePair(folder, 'other')];
    const missing = { ...pair, certificate: join(folder, 'missing.pem') };
    await expect(signerOf(missing).check()).rejects.toThrow(/CREDENTIALS_CERTIFICATE cannot be read: ENOENT/);
    await expect(signerOf({ ...pair, certificate: pair.key }).check()).rejects.toThrow(/has no certificates in PEM/);
    await expect(signerOf({ ...pair, key: pair.certificate }).check()).rejects.toThrow(/has no private key in PEM/);
    const signer = signerOf({ ...pair, key: other.key });
    await expect(signer.check()).rejects.toThrow(/CREDENTIALS_KEY is not the key of the first certificate/);
    writeFileSync(other.key, readFileSync(pair.key));
    await signer.check();
  });

  it('lets a service elsewhere sign, and takes nothing else from it than a signature', async () => {
    const { certificate, key } = await writePair(folder, 'remote');
    const privateKey = createPrivateKey(readFileSync(key));
    let answers = (body: Buffer): Buffer | undefined =>
      sign('sha256', body, { key: privateKey, dsaEncoding: 'ieee-p1363' });
    const signing = { certificate, signer: await serve((body) => answers(body)) };
    expect((await verify((await signed(signing)).bytes)).credentials.state).toBe('valid');
    answers = () => Buffer.alloc(64);
    await expect(signerOf(signing).check()).rejects.toThrow(/What CREDENTIALS_SIGNER answers is no signature/);
    answers = () => undefined;
    await expect(signerOf(signing).check()).rejects.toThrow('CREDENTIALS_SIGNER does not do its part: it answers 500.');
    answers = () => Buffer.alloc(200_000);
    await expect(signerOf(signing).check()).rejects.toThrow('it answers more than 100000 bytes');
  });

  it('says why a service elsewhere cannot be asked, without its address', async () => {
    const { certificate } = await writePair(folder, 'away');
    const redirecting = await serve((_, response) => {
      response.writeHead(307, { location: '/elsewhere' }).end();
      return undefined;
    });
    for (const signer of [redirecting, redirecting.replace('//', '//somebody:secret@')]) {
      const failed = signerOf({ certificate, signer }).check();
      await expect(failed).rejects.toThrow(
        'CREDENTIALS_SIGNER does not do its part: it cannot be reached, or it redirects.',
      );
    }
  });

  it('adds a time stamp, and does without where the server gives none', async () => {
    const server = writeTimeStampServer(folder);
    const pair = await writePair(folder, 'stamped');
    let asked: Buffer | undefined;
    const timeStamp = await serve((body) => server.answer((asked = body)));
    const stamped = await signed({ ...pair, timeStamp });
    expect(stamped.note).toBeUndefined();
    const { credentials } = await verify(stamped.bytes);
    expect(credentials).toMatchObject({ state: 'valid', problems: [] });
    expect(new Date(credentials.signed_at!).getTime()).toBeGreaterThan(Date.now() - 60_000);
    const [granted, ofAnother] = [Buffer.from('3003020100', 'hex'), server.answer(asked!)];
    const grant = (token: Buffer): Buffer => {
      const [whole, head] = [Buffer.concat([granted, token]), Buffer.from('3083000000', 'hex')];
      head.writeUIntBE(whole.length, 2, 3);
      return Buffer.concat([head, whole]);
    };
    const answers: [(request: Buffer) => Buffer, RegExp][] = [
      [() => Buffer.from('30053003020102', 'hex'), /it grants no time stamp\.$/],
      [() => Buffer.from('<html>Try again later.</html>'), /it grants no time stamp\.$/],
      [() => grant(Buffer.from('garbage')), /its time stamp is not of what was asked\.$/],
      [() => ofAnother, /its time stamp is not of what was asked\.$/],
      [
        (request) => grant(Buffer.concat([request, Buffer.alloc(20_000)])),
        /has \d+ bytes, and there is room for 12000/,
      ],
    ];
    for (const [answer, sentence] of answers) {
      const without = await signed({ ...pair, timeStamp: await serve(answer) });
      expect(without.note).toMatch(sentence);
      expect((await verify(without.bytes)).credentials).toMatchObject({ state: 'valid', signed_at: null });
    }
  });
});
