import { createPrivateKey, sign } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PictureSigner } from '@app/credentials';
import { writePair } from '../support/certificates';
import { signingSite } from '../support/signing';

describe(PictureSigner.name, () => {
  const { folder, serve, signed, signerOf, verify } = signingSite();

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

  it('signs no picture with a certificate that C2PA forbids, although it could at first', async () => {
    const pair = await writePair(folder, 'allowed at first');
    const signer = signerOf(pair);
    await signed(signer);
    const forbidden = await writePair(folder, 'forbidden', { usage: '1.3.6.1.5.5.7.3.1' });
    for (const part of ['key', 'certificate'] as const) writeFileSync(pair[part], readFileSync(forbidden[part]));
    await expect(signed(signer)).rejects.toThrow(/does not hold: .*signingCredential\.invalid/);
  });

  it.each([
    ['has expired', { days: [-30, -1] as [number, number] }, /has expired on 20/],
    ['is of tomorrow', { days: [1, 30] as [number, number] }, /is valid only from 20/],
    ['is for servers', { usage: '1.3.6.1.5.5.7.3.1' }, /does not hold: .*signingCredential\.invalid/],
  ])('says of a certificate that it %s', async (name, wanted, sentence) => {
    const signer = signerOf(await writePair(folder, name, wanted));
    await expect(signer.check()).rejects.toThrow(sentence);
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
});
