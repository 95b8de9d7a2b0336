import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { type PictureReport, PictureVerifier } from '@app/credentials';
import { InferenceWorker } from '@app/domain';
import type { PictureParameters } from '../../apps/inference/src/pictures/image-encoder';
import { PictureCredentials } from '../../apps/inference/src/pictures/picture-credentials';
import { noTrust, writePair } from '../support/certificates';
import { createInferenceBench, type InferenceBench } from '../support/inference';
import { manifestsIn } from '../support/manifests';
import { plainPicture, signingSite } from '../support/signing';
import { until } from '../support/until';
import { startWorker } from '../support/worker';

const folder = mkdtempSync(join(tmpdir(), 'darkroom-credentials-'));

/** Replaces a pair by another one. */
function replace(pair: { certificate: string; key: string }, by: typeof pair): void {
  for (const part of ['certificate', 'key'] as const) writeFileSync(pair[part], readFileSync(by[part]));
}

describe('A worker that signs', () => {
  const verifier = new PictureVerifier();
  let bench: InferenceBench;
  afterEach(() => bench.close());
  afterAll(() => verifier.close());

  async function start(mode: 'required' | 'optional', pair: { certificate: string; key: string }) {
    bench = await createInferenceBench({
      ...{ CREDENTIALS: mode, CREDENTIALS_CERTIFICATE: pair.certificate, CREDENTIALS_KEY: pair.key },
    });
    return startWorker(bench);
  }
  const reported = async () => (await bench.dataSource.manager.findOneByOrFail(InferenceWorker, {})).credentials;
  async function pictureOf(id: string): Promise<{ file: Buffer; bytes: number; report: PictureReport }> {
    const { images } = await bench.terminated(id);
    const file = await buffer((await bench.storage.read(images[0].storageKey))!.stream);
    const path = join(folder, id);
    writeFileSync(path, file);
    return {
      file,
      bytes: images[0].bytes,
      report: await verifier.verify('somebody', { path, type: 'image/png', own: noTrust }),
    };
  }
  const health = async () => {
    const line = await until(async () => bench.logged.find(({ msg }) => msg === 'inference is ready'), 'it listens');
    const answer = await fetch(`http://127.0.0.1:${line.healthPort as number}/health/ready`);
    return (await answer.json()) as { status: string; checks: Record<string, boolean> };
  };

  it('draws nothing while nothing can be signed, says why, and draws when it can', async () => {
    const pair = await writePair(folder, 'expired', { days: [-30, -1] });
    await start('required', pair);
    const { id } = await bench.addTask();
    await until(async () => (await health()).status === 'degraded', 'its readiness is degraded');
    expect((await health()).checks).toMatchObject({ credentials: false, engine: true });
    await until(async () => /has expired on/.test((await reported())?.problem ?? ''), 'it says why');
    expect(bench.logged.filter(({ msg }) => msg === 'no picture can be signed')).toHaveLength(1);
    expect((await bench.taskOf(id)).status).toBe('queued');
    replace(pair, await writePair(folder, 'renewed'));
    const { report, file, bytes } = await pictureOf(id);
    expect(report).toMatchObject({ credentials: { state: 'valid' }, record: { id, index: 0 } });
    expect(bytes).toBe(file.length);
    const path = join(folder, 'usual.png');
    writeFileSync(path, file);
    expect(manifestsIn([path])[0]?.actions[0].parameters).toEqual({ record: id, index: 0 });
    await until(async () => (await reported())?.problem === null, 'it says that all is well');
  });

  it('gives a drawn task back whose pictures cannot be signed any more, and counts no failure', async () => {
    const pair = await writePair(folder, 'broken');
    await start('required', pair);
    await pictureOf((await bench.addTask()).id);
    replace(pair, await writePair(folder, 'out of date', { days: [-30, -1] }));
    const { id } = await bench.addTask();
    await until(
      async () => bench.logged.some(({ msg }) => msg === 'given back: pictures cannot be signed'),
      'it is given back',
    );
    expect(await bench.taskOf(id)).toMatchObject({ status: 'queued', failures: 0, images: [] });
    replace(pair, await writePair(folder, 'in order'));
    expect((await pictureOf(id)).report.credentials.state).toBe('valid');
  });

  it('stores pictures without credentials where they are optional, and logs each', async () => {
    await start('optional', await writePair(folder, 'old', { days: [-30, -1] }));
    const { id } = await bench.addTask();
    const { report } = await pictureOf(id);
    expect(report).toMatchObject({ source_type: 'trainedAlgorithmicMedia', credentials: { state: 'none' } });
    expect(bench.logged).toContainEqual(
      expect.objectContaining({ msg: 'a picture is stored without credentials', taskId: id }),
    );
    expect((await health()).status).toBe('degraded');
  });
});

describe(PictureCredentials.name, () => {
  const { folder: ofPairs, serve, signed } = signingSite();

  it('warns of each picture that is signed without its time stamp, or without what a given one says', async () => {
    const pair = await writePair(ofPairs, 'warned');
    const warn = jest.fn();
    const timeStamp = await serve(() => undefined);
    const credentials = new PictureCredentials(
      { credentials: { ...pair, timeStamp, prompt: false, isRequired: true } },
      { log: () => undefined, warn },
    );
    const file = await plainPicture();
    const encoded = { parts: [file], bytes: file.length, contentType: 'image/png', extension: 'png' };
    const cut = { bytes: (await signed(pair)).bytes.subarray(0, 700), type: 'image/png' };
    const made = await credentials.sign(
      { id: 'record', ownerId: 'owner' },
      0,
      { ...encoded, width: 64, height: 48 },
      {
        parameters: { model: 'shapes', model_hash: 'abc' } as PictureParameters,
        given: [{ field: 'image', sha256: 'aa', credentials: cut }],
      },
    );
    await credentials.onApplicationShutdown();
    expect(made.bytes).toBeGreaterThan(file.length);
    expect(warn.mock.calls).toEqual([
      [
        'a picture is signed without a time stamp',
        { taskId: 'record', reason: 'CREDENTIALS_TIME_STAMP does not do its part: it answers 500.' },
      ],
      [
        'a picture is signed without the credentials of a given one',
        { taskId: 'record', reasons: [expect.stringMatching(/^image: ./)] },
      ],
    ]);
  });
});
