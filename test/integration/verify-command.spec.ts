import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { runVerify } from '../../apps/cli/src/verify-command';
import { writePair } from '../support/certificates';
import { altered, inDays, plainPicture, recordId, signingSite } from '../support/signing';

type Pair = Awaited<ReturnType<typeof writePair>>;

describe('npm run verify', () => {
  const { folder, signed, written } = signingSite();

  async function verify(env: Record<string, string>, ...args: string[]) {
    const [stdout, stderr]: string[][] = [[], []];
    const code = await runVerify(args, {
      env: { DATA_DIR: join(folder, 'data'), ...env },
      stdout: { write: (text: string) => stdout.push(text) },
      stderr: { write: (text: string) => stderr.push(text) },
    });
    return { code, printed: stdout.join('').split('\n').filter(Boolean), said: stderr.join('') };
  }
  const variablesOf = ({ certificate, key }: Pair) => ({ CREDENTIALS_CERTIFICATE: certificate, CREDENTIALS_KEY: key });
  const holds = 'Its Content Credentials hold: nothing has changed since it was signed.';
  const made = 'It says that it is: trainedAlgorithmicMedia';

  it('knows a picture of ours, also by a former certificate in CREDENTIALS_OWN, and calls others foreign', async () => {
    const [now, former] = [await writePair(folder, 'now'), await writePair(folder, 'former')];
    const path = written('former.png', (await signed(former)).bytes);
    const ours = await verify({ ...variablesOf(now), CREDENTIALS_OWN: former.certificate }, path);
    expect(ours).toEqual({
      code: 0,
      printed: [
        ...[made, holds, 'Signed by: A tester, with a certificate of yours', '  c2pa.created by shapes (abcdef)'],
        `Record: ${recordId}, picture 2`,
      ],
      said: '',
    });
    const foreign = await verify(variablesOf(now), path);
    expect(foreign.code).toBe(0);
    expect(foreign.printed).toContain('Signed by: A tester, with a certificate that is none of yours');
    expect(foreign.printed).toContain(`It claims to be of the record: ${recordId}, picture 2`);
  });

  it('prints JSON, in which the record is what the picture claims', async () => {
    const pair = await writePair(folder, 'json');
    const path = written('json.png', (await signed(pair)).bytes);
    const { code, printed } = await verify(variablesOf(pair), path, '--json');
    const report = JSON.parse(printed.join('\n')) as object;
    expect([code, Object.keys(report)]).toEqual([0, ['marked', 'source_type', 'credentials', 'claimed_record']]);
    expect(report).toMatchObject({
      ...{ marked: true, source_type: 'trainedAlgorithmicMedia', credentials: { state: 'valid', own: true } },
      claimed_record: { id: recordId, drawn_index: 2 },
    });
    const plain = await verify(variablesOf(pair), written('plain.png', await plainPicture()), '--json');
    expect(JSON.parse(plain.printed.join('\n'))).toMatchObject({ marked: false, claimed_record: null });
  });

  it('names the pictures that it was made from, and whether their credentials hold', async () => {
    const pair = await writePair(folder, 'edit');
    const { bytes } = await signed(pair);
    const given = [
      { field: 'image', sha256: 'aa', credentials: { bytes, type: 'image/png' } },
      { field: 'mask', sha256: 'bb' },
    ];
    const path = written('edit.png', (await signed(pair, { given })).bytes);
    const { code, printed } = await verify(variablesOf(pair), path);
    expect(code).toBe(0);
    expect(printed).toContain('  from image, whose own credentials are: valid');
    expect(printed).toContain('  from mask, whose own credentials are: none');
  });

  it('ends with 1 for credentials that do not hold, or not any more, and for what is no picture', async () => {
    const pair = await writePair(folder, 'ended');
    const { bytes } = await signed(pair);
    const [path, changed] = [written('ended.png', bytes), written('changed.png', altered(bytes))];
    const found = await verify(variablesOf(pair), changed);
    expect([found.code, found.said]).toEqual([1, `${changed} was changed, or was never in order.\n`]);
    expect(found.printed).toContain('  because of: assertion.dataHash.mismatch');
    const expired = await inDays(60, folder, () => verify(variablesOf(pair), path));
    expect([expired.code, expired.said]).toEqual([1, `${path} is signed with a certificate that has expired.\n`]);
    expect(expired.printed).toContain('Signed by: A tester, with a certificate of yours');
    const none = await verify(variablesOf(pair), pair.key);
    expect([none.code, none.printed]).toEqual([1, []]);
    expect(none.said).toMatch(/^.*ended\.key [^\n]+\.\n$/);
  });

  it('ends with 78 and one sentence where a file of certificates is missing, and reads nothing', async () => {
    const pair = await writePair(folder, 'missing');
    const path = written('missing.png', (await signed(pair)).bytes);
    const others = await verify({ ...variablesOf(pair), CREDENTIALS_OWN: join(folder, 'nowhere') }, path);
    rmSync(pair.certificate);
    const own = await verify(variablesOf(pair), path);
    const sentence = (variable: string) => `The file of ${variable} cannot be read: ENOENT.\n`;
    expect([others, own]).toEqual([
      { code: 78, printed: [], said: sentence('CREDENTIALS_OWN') },
      { code: 78, printed: [], said: sentence('CREDENTIALS_CERTIFICATE') },
    ]);
  });
});
