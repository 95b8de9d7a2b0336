import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { PictureVerifier } from '@app/credentials';
import { newIdentifier } from '@app/domain';
import type { UploadDto, VerificationDto } from '@app/domain/http';
import { TurnsFullError, WorkError } from '@app/process';
import { UploadsService } from '../../apps/api/src/files/uploads.service';
import { createClient } from '../../packages/client/src';
import { startTestApi, type TestKey } from '../support/api';
import { writePair } from '../support/certificates';
import { manifestsIn } from '../support/manifests';
import { ofSuite } from '../support/of-suite';
import { altered, plainPicture, signingSite } from '../support/signing';
import { smallPicture } from '../support/small-picture';
import { until } from '../support/until';

interface Drawn {
  id: string;
  status: string;
  images: string[];
  error: string | null;
}

describe('POST /v1/verify', () => {
  const { folder, signed, written } = signingSite();
  /** A pair that was signed with before. */
  const former = ofSuite(() => writePair(folder, 'former'));
  const api = ofSuite(async () => {
    const pair = await writePair(folder, 'api');
    return startTestApi({
      ...{ CREDENTIALS_CERTIFICATE: pair.certificate, CREDENTIALS_KEY: pair.key, CREDENTIALS_PROMPT: 'on' },
      CREDENTIALS_OWN: former.certificate,
      PUBLIC_URL: 'https://darkroom.example',
    });
  });
  const key = ofSuite(() => api.createKey({ sandbox: true }));
  const reader = new PictureVerifier();
  afterEach(() => jest.restoreAllMocks());
  afterAll(() => reader.close());

  /** Lets something happen before each picture is read. */
  function beforeReading(act: (owner: string) => Promise<void>) {
    const read = reader.verify.bind(reader);
    return jest.spyOn(PictureVerifier.prototype, 'verify').mockImplementation(async (owner, order) => {
      await act(owner);
      return read(owner, order);
    });
  }

  const verify = (raw: Buffer, owner: TestKey = key) =>
    api.request<VerificationDto & { code: string; detail: string }>('POST', '/v1/verify', { key: owner, raw });
  async function draw(body: object = {}, place = 0): Promise<{ record: Drawn; file: Buffer }> {
    const made = await api.request<Drawn>('POST', '/v1/sd/text-to-image', { key, body: { prompt: 'a star', ...body } });
    const path = `/v1/sd/text-to-image/${made.body.id}`;
    const record = await until(async () => {
      const { body: found } = await api.request<Drawn>('GET', path, { key });
      return ['succeeded', 'failed'].includes(found.status) && found;
    }, 'it has ended');
    const file = await fetch(`${api.baseUrl}${new URL(record.images[place]).pathname}`);
    return { record, file: Buffer.from(await file.arrayBuffer()) };
  }

  it('tells the owner of a picture which record made it, and others what it says of itself', async () => {
    const { record, file } = await draw();
    const said = {
      marked: true,
      source_type: 'trainedAlgorithmicMedia',
      credentials: {
        ...{ state: 'valid', own: true, issuer: 'A tester', signed_at: null, ingredients: [], problems: [] },
        actions: [
          {
            ...{ action: 'c2pa.created', source_type: 'trainedAlgorithmicMedia' },
            ...{ agent: 'sandbox', agent_version: null },
          },
        ],
      },
    };
    const own = await verify(file);
    expect([own.status, own.body]).toEqual([200, { ...said, record: { id: record.id, kind: 'generation', index: 0 } }]);
    expect((await verify(file, await api.createKey())).body).toEqual({ ...said, record: null });
    const client = createClient({ baseUrl: api.baseUrl, apiKey: key.token });
    expect(await client.verify(file)).toEqual(own.body);
  });

  it('tells the prompt in the manifest where CREDENTIALS_PROMPT is on', async () => {
    const { record, file } = await draw();
    const [manifest] = manifestsIn([written('prompted.png', file)]);
    expect(manifest?.actions[0].parameters).toMatchObject({ record: record.id, prompt: 'a star' });
  });

  it('keeps the credentials of the pictures that an edit was made from, also of an upload', async () => {
    const first = await draw({ output_format: 'jpeg' });
    const upload = await api.request<UploadDto>('POST', '/v1/uploads', { key, raw: first.file });
    expect(upload.body.bytes).toBe(first.file.length);
    for (const image of [first.record.images[0], upload.body.url]) {
      const { file } = await draw({ image, references: undefined });
      const { body } = await verify(file);
      expect(body.source_type).toBe('compositeWithTrainedAlgorithmicMedia');
      expect(body.credentials).toMatchObject({
        state: 'valid',
        actions: [{ action: 'c2pa.opened' }, { action: 'c2pa.edited' }],
        ingredients: [{ title: 'image', relationship: 'parentOf', state: 'valid' }],
      });
    }
  });

  it('finds a changed byte, and then no record', async () => {
    const { file } = await draw();
    file[file.length - 40] ^= 1;
    const { body } = await verify(file);
    expect(body).toMatchObject({
      credentials: { state: 'invalid', problems: ['assertion.dataHash.mismatch'] },
      record: null,
    });
  });

  it('says of a picture that says nothing that it does', async () => {
    expect((await verify(await smallPicture())).body).toEqual({
      ...{ marked: false, source_type: null, record: null },
      credentials: {
        state: 'none',
        own: false,
        issuer: null,
        signed_at: null,
        actions: [],
        ingredients: [],
        problems: [],
      },
    });
  });

  it('refuses what is no picture, what is broken off, and what is empty', async () => {
    const { file } = await draw();
    const answers = [await verify(Buffer.from('hello')), await verify(file.subarray(0, 900))];
    expect(answers.map(({ status, body }) => [status, body.code])).toEqual([
      [422, 'PictureUnreadable'],
      [422, 'PictureUnreadable'],
    ]);
    expect((await verify(Buffer.alloc(0))).status).toBe(400);
  });

  it('says that it cannot be read now where the process has ended, and nothing of what that has printed', async () => {
    const died = new WorkError('died', 'The process ended: exit code 1 at /srv/secret.js.');
    jest.spyOn(PictureVerifier.prototype, 'verify').mockRejectedValueOnce(died);
    const { status, body } = await verify(await smallPicture());
    expect([status, body.detail]).toEqual([503, 'Pictures cannot be read at the moment. Try again shortly.']);
  });

  it('knows pictures by former certificates in CREDENTIALS_OWN, and reads none while their file is missing', async () => {
    const { bytes } = await signed(former);
    const picture = Buffer.from(bytes);
    const { credentials } = (await verify(picture)).body;
    expect(credentials).toMatchObject({ state: 'valid', own: true });
    const foreign = await signed(await writePair(folder, 'foreign'));
    expect((await verify(Buffer.from(foreign.bytes))).body.credentials).toMatchObject({ state: 'valid', own: false });
    const kept = readFileSync(former.certificate);
    rmSync(former.certificate);
    const { status, body } = await verify(picture);
    writeFileSync(former.certificate, kept);
    expect([status, body.code]).toEqual([503, 'ServiceUnavailable']);
  });

  it('lets a key that sends too much come back later, and reads those of others meanwhile', async () => {
    const usualWaitMs = UploadsService.longestWaitMs;
    let go!: () => void;
    const held = new Promise<void>((resolve) => (go = resolve));
    const reading = beforeReading(async (owner) => (owner === key.id ? held : undefined));
    UploadsService.longestWaitMs = 100;
    const picture = await smallPicture();
    const sent = Array.from({ length: 10 }, () => verify(picture));
    const { status, headers } = await Promise.race(sent);
    expect([status, Number(headers.get('retry-after'))]).toEqual([429, 10]);
    expect((await verify(picture, await api.createKey())).status).toBe(200);
    UploadsService.longestWaitMs = usualWaitMs;
    go();
    const statuses = (await Promise.all(sent)).map((each) => each.status);
    expect([...new Set(statuses)].sort()).toEqual([200, 429]);
    reading.mockRestore();
    jest.spyOn(PictureVerifier.prototype, 'verify').mockRejectedValueOnce(new TurnsFullError(true));
    const full = await verify(picture);
    expect([full.status, full.body.code, full.headers.get('retry-after')]).toEqual([429, 'TooManyRequests', '5']);
  });

  it('names the place in `images`, where a picture before is filtered', async () => {
    const { record, file } = await draw({ num_generations: 2 }, 1);
    await api.dataSource.query('DELETE FROM images WHERE task_id = $1 AND index = 0', [record.id]);
    expect((await verify(file)).body.record).toEqual({ id: record.id, kind: 'generation', index: 0 });
  });

  it('keeps nothing of what it reads: no row, no file of its own, and nothing in the storage', async () => {
    const { file } = await draw();
    const kept = async () => ({
      rows: await api.dataSource.query<object[]>('SELECT id FROM uploaded_pictures UNION SELECT id FROM uploads'),
      files: readdirSync(api.config.dataDir, { recursive: true }).sort(),
      stored: await api.backEnds.storage.contents(''),
    });
    const before = await kept();
    const reading = beforeReading(async () => expect(await kept()).not.toEqual(before));
    for (const body of [file, altered(file), await plainPicture(), file.subarray(0, 900)]) await verify(body);
    expect(reading).toHaveBeenCalledTimes(4);
    expect(await kept()).toEqual(before);
  });

  it('is told by the models and by readiness, as the workers say', async () => {
    const modelsOf = async () => {
      const { body } = await api.request<{ name: string; credentials: string }[]>('GET', '/v1/models', { key });
      return body.find(({ name }) => name === 'shapes')?.credentials;
    };
    const ready = async () => {
      const { body } = await api.request<{ status: string; credentials: string }>('GET', '/health/ready');
      return [body.status, body.credentials];
    };
    const first = newIdentifier();
    const say = (credentials: object | null, id = first) =>
      api.dataSource.query(
        `INSERT INTO inference_workers (id, devices, models, credentials, started_at, heartbeat_at)
         VALUES ($1, '{cpu}', '{shapes}', $2, now(), now() + interval '1 hour')
         ON CONFLICT (id) DO UPDATE SET credentials = excluded.credentials`,
        [id, credentials && JSON.stringify(credentials)],
      );
    await say(null);
    expect([await modelsOf(), await ready()]).toEqual(['off', ['ok', 'off']]);
    await say({ problem: null });
    expect([await modelsOf(), await ready()]).toEqual(['on', ['ok', 'on']]);
    const second = newIdentifier();
    await say(null, second);
    expect([await modelsOf(), await ready()]).toEqual(['partly', ['ok', 'partly']]);
    await api.dataSource.query('DELETE FROM inference_workers WHERE id = $1', [second]);
    await say({ problem: 'It has expired.' });
    expect([await modelsOf(), await ready()]).toEqual(['failing', ['degraded', 'failing']]);
    const admin = await api.createKey({ scopes: ['admin'] });
    const workers = await api.request<object[]>('GET', '/v1/workers', { key: admin });
    expect(workers.body).toMatchObject([{ credentials: 'failing', credentials_problem: 'It has expired.' }]);
  });
});
