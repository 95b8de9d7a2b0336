import { readFileSync } from 'node:fs';
import { ownCertificates, PictureVerifier } from '@app/credentials';
import { noTrust, writePair } from '../support/certificates';
import { altered, inDays, signingSite } from '../support/signing';
import { writeTimeStampServer } from '../support/time-stamp-server';

describe('Time stamps', () => {
  const { folder, serve, signed, verify } = signingSite();

  it('says when a certificate has expired since, unless an authority says that it was signed before', async () => {
    const server = writeTimeStampServer(folder);
    const pair = await writePair(folder, 'ageing');
    const later = await inDays(60, folder, () => new PictureVerifier());
    const [plainly, stamped] = [await signed(pair), await signed({ ...pair, timeStamp: await serve(server.answer) })];
    const own = await ownCertificates({ ownCertificate: { path: pair.certificate, isNamed: true } });
    const stateOf = async (bytes: Uint8Array, trust = own) => {
      const { state, own: isOwn } = (await verify(bytes, 'image/png', trust, later)).credentials;
      return [state, isOwn];
    };
    expect(await stateOf(plainly.bytes)).toEqual(['expired', true]);
    expect(await stateOf(altered(plainly.bytes))).toEqual(['invalid', false]);
    expect(await stateOf(stamped.bytes)).toEqual(['expired', true]);
    const clocks = readFileSync(server.authority, 'utf8');
    expect(await stateOf(stamped.bytes, { ...own, clocks })).toEqual(['valid', true]);
    later.close();
  });

  it('adds a time stamp, and does without where the server gives none', async () => {
    const server = writeTimeStampServer(folder);
    const pair = await writePair(folder, 'stamped');
    let asked: Buffer | undefined;
    const timeStamp = await serve((body) => server.answer((asked = body)));
    const stamped = await signed({ ...pair, timeStamp });
    expect(stamped.note).toBeUndefined();
    // A stranger may put one of a server of his own in its place.
    expect((await verify(stamped.bytes)).credentials).toMatchObject({ state: 'valid', signed_at: null });
    const clocks = readFileSync(server.authority, 'utf8');
    const { credentials } = await verify(stamped.bytes, 'image/png', { ...noTrust, clocks });
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
