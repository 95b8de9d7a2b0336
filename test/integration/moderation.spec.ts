import { execFile } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { databaseUrlOf } from '@app/config';
import { AuditEntry } from '@app/domain';
import { misconfiguredExitCode } from '@app/process';
import { startTestApi } from '../support/api';
import { makeFinetune, type ProblemJson } from '../support/factories';
import { startModeration } from '../support/moderation-server';
import { ofSuite, ofTest } from '../support/of-suite';

const sentence = 'Weapons are not drawn here.';
const categories = 'The moderation of this service does not let it be drawn (violence).';

function rulesFile(text = `gun, mickey mouse: ${sentence}\n`): string {
  const file = join(mkdtempSync(join(tmpdir(), 'darkroom-rules-')), 'rules.txt');
  writeFileSync(file, text);
  return file;
}

describe('A text that the operator does not want drawn', () => {
  const moderation = ofSuite(startModeration);
  const api = ofSuite(() =>
    startTestApi({
      PROMPT_RULES: rulesFile(),
      MODERATION_URL: moderation.url,
      MODERATION_KEY: 'key of the moderation',
      MODERATION_ON_ERROR: 'refuse',
      AUDIT_DAYS: '30',
    }),
  );
  const key = ofTest(() => api.createKey());
  beforeEach(() => {
    moderation.asked.inputs.length = 0;
    moderation.behaviour.fault = undefined;
  });

  const post = (path: string, body: object) => api.request<ProblemJson>('POST', path, { key, body });
  const refusal = (pointer: string, why = sentence) => ({
    status: 422,
    body: { code: 'PromptRefused', detail: why, errors: [{ pointer, message: `is refused: ${why}` }] },
  });
  const waiting = async (): Promise<number> => {
    const [{ count }] = await api.dataSource.query<[{ count: number }]>('SELECT count(*)::int AS count FROM tasks');
    return count;
  };

  it('is refused with its sentence, and nothing waits', async () => {
    const before = await waiting();
    expect(await post('/v1/sd/text-to-image', { prompt: 'a Gun!' })).toMatchObject(refusal('/prompt'));
    expect(await post('/v1/finetunes', { prompt: 'a gun' })).toMatchObject(refusal('/prompt'));
    expect(await waiting()).toBe(before);
    expect(moderation.asked.inputs).toEqual([]);
    expect((await post('/v1/sd/text-to-image', { prompt: 'a rose', negative_prompt: 'gun' })).status).toBe(201);
  });

  it('keeps an api from starting where its rules cannot be read, which is said in plain sentences alone', async () => {
    const file = rulesFile('gun\nrose: No roses.\ntulip:\n');
    const env = { ...process.env, DATABASE_URL: databaseUrlOf(api.config), PROMPT_RULES: file, PORT: '0' };
    const started = promisify(execFile)(process.execPath, [join('dist', 'apps', 'api', 'src', 'main.js')], { env });
    const failure = await started.catch((error: { code: number; stdout: string; stderr: string }) => error);
    const must = 'must be words or phrases, a colon and a sentence: "gun, rifle*: No weapons."';
    expect(failure).toMatchObject({
      code: misconfiguredExitCode,
      stdout: '',
      stderr: `The api could not start: PROMPT_RULES is ${file}, and has lines that cannot be used:\nLine 1 ${must}\nLine 3 ${must}\n`,
    });
  });

  it('is in the audit of who asked for what', async () => {
    const body = { prompt: 'a gun', user: 'customer-42' };
    // Such a request is one transaction, which is rolled back.
    await api.request('POST', '/v1/sd/text-to-image', { key, body, headers: { 'idempotency-key': 'one' } });
    const [entry] = await api.dataSource.manager.findBy(AuditEntry, { ownerId: key.id });
    const told = { kind: 'generation', prompt: 'a gun', endUser: 'customer-42', taskId: null, accountId: key.id };
    expect(entry).toMatchObject({ ...told, decision: 'refused', reason: sentence });
  });

  it('is refused as it was sent, whatever a Fine-Tune writes between its words', async () => {
    const { id } = await makeFinetune(api, key, { name: 'mouse', token: 'zq' });
    const refused = await post(`/v1/finetunes/${id}/prompts`, [{ prompt: 'a mickey mouse on a wall' }]);
    expect(refused).toMatchObject({ status: 422, body: { code: 'PromptRefused', errors: [{ pointer: '/0/prompt' }] } });
    expect(refused.body.errors).toHaveLength(1);
  });

  it('is refused as the moderation of MODERATION_URL says', async () => {
    const refused = await post('/v1/sd/text-to-image', { prompt: 'a flagged rose' });
    expect(refused).toMatchObject(refusal('/prompt', categories));
    expect(moderation.asked.inputs).toEqual(['a flagged rose']);
    expect(moderation.asked.keys).toContain('Bearer key of the moderation');
  });

  it('is refused in one of several Prompts, and none of them is made', async () => {
    const { id } = await makeFinetune(api, key);
    const before = await waiting();
    const bodies = ['a robot', 'a robot with a gun', 'the same robot'].map((prompt) => ({ prompt }));
    expect(await post(`/v1/finetunes/${id}/prompts`, bodies)).toMatchObject(refusal('/1/prompt'));
    expect(await post(`/v1/finetunes/${id}/prompts`, [bodies[0], { prompt: 'a flagged robot' }])).toMatchObject(
      refusal('/1/prompt', categories),
    );
    expect(await waiting()).toBe(before);
  });

  it('is not drawn unseen: while the moderation answers nonsense, requests are told to come again', async () => {
    moderation.behaviour.fault = 'broken';
    const refused = await post('/v1/sd/text-to-image', { prompt: 'a rose' });
    expect([refused.status, refused.body.code]).toEqual([503, 'ServiceUnavailable']);
    expect(refused.headers.get('retry-after')).toBe('10');
  });

  it('is counted by who refuses it, as is what the moderation answers', async () => {
    const read = async () => {
      const { text } = await api.request('GET', '/metrics');
      const found = text.matchAll(/^darkroom_(?:moderation_requests|prompts_refused)_total\{\w+="(\w+)"\} (\d+)$/gm);
      return Object.fromEntries([...found].map(([, label, count]) => [label, Number(count)]));
    };
    const before = await read();
    for (const prompt of ['a gun', 'a flagged rose', 'a rose']) await post('/v1/sd/text-to-image', { prompt });
    moderation.behaviour.fault = 'broken';
    await post('/v1/sd/text-to-image', { prompt: 'a rose' });
    const after = Object.entries(await read()).map(([label, count]) => [label, count - before[label]]);
    expect(Object.fromEntries(after)).toEqual({ ok: 1, flagged: 1, failed: 1, rules: 1, moderation: 1 });
  });

  it('is drawn while the moderation is away, where that is what the operator wants', async () => {
    const own = await startTestApi({ MODERATION_URL: 'http://127.0.0.1:9/', MODERATION_ON_ERROR: 'allow' });
    try {
      const drawn = await own.request('POST', '/v1/sd/text-to-image', {
        key: await own.createKey(),
        body: { prompt: 'a flagged rose' },
      });
      expect(drawn.status).toBe(201);
    } finally {
      await own.close();
    }
  });
});
