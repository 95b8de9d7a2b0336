import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PictureVerifier, sourceTypes } from '@app/credentials';
import sharp from 'sharp';
import { type DigitalSourceType, xmpOf } from '../../apps/inference/src/pictures/source-type';
import { noTrust, writePair } from '../support/certificates';
import { altered, plainPicture, signingSite } from '../support/signing';

describe(PictureVerifier.name, () => {
  const { folder, serve, signed, signerOf, verify } = signingSite();

  it('finds a byte that was changed after signing', async () => {
    const { bytes } = await signed(await writePair(folder, 'changed'));
    const { credentials } = await verify(altered(bytes));
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
    const picture = sharp(await plainPicture()).jpeg();
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
    const given = [
      { field: 'image', sha256: 'aa', credentials: file },
      { field: 'mask', sha256: 'bb' },
      { field: 'references[0]', sha256: 'cc', credentials: { ...file, bytes: altered(file.bytes) } },
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
    const picture = await sharp(await plainPicture('jpeg'))
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
});
