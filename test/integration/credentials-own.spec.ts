import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ownCertificates } from '@app/credentials';
import sharp from 'sharp';
import { ensureOwnPair } from '../../apps/launcher/src/own-certificate';
import { noTrust, writePair } from '../support/certificates';
import { altered, plainPicture, recordId, signingSite } from '../support/signing';

const named = (path: string) => ({ path, isNamed: true });

describe('Certificates of a service', () => {
  const { folder, signed, signerOf, verify } = signingSite();

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
      const [before, after] = [await plainPicture(format), bytes].map((file) => sharp(file).raw().toBuffer());
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
    const found = [];
    for (const picture of [...pictures, altered(pictures[0])])
      found.push((await verify(picture, 'image/png', own)).credentials);
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
});
