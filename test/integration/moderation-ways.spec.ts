import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import OpenAI, { toFile } from 'openai';
import sharp from 'sharp';
import { startTestApi } from '../support/api';
import { makeFinetune, makePrompts, type ProblemJson } from '../support/factories';
import { startModeration } from '../support/moderation-server';
import { ofSuite } from '../support/of-suite';
import { until } from '../support/until';

/** A word that the rules refuse, with what is said then, and one that the moderation refuses. */
const refusals = [
  ['gun', 'Weapons are not drawn here.'],
  ['flagged', 'The moderation of this service does not let it be drawn (violence).'],
] as const;

const rules = join(mkdtempSync(join(tmpdir(), 'darkroom-rules-')), 'rules.txt');
writeFileSync(rules, `gun: ${refusals[0][1]}\n`);

/** What the requests of a table use. */
interface Made {
  /** A Fine-Tune named robot. */
  robot: string;
  /** One that has the word as its name. */
  named: string;
  style: string;
}

type Way = [name: string, request: (word: string, made: Made) => [path: string, body: object], pointer: string];

const finetunes = '/v1/finetunes';
const trained = {
  ...{ name: 'robot', model: 'shapes' },
  images_url: Array.from({ length: 4 }, (_, i) => `https://pictures.example.com/${i}.png`),
};
const fetched = { name: 'robot', model: 'shapes', weights_url: 'https://weights.example.com/robot.safetensors' };
const captionsWith = (word: string) => ['a robot', 'a robot', `a robot and a ${word}`, 'a robot'];

const ways: Way[] = [
  ['a Generation', (word) => ['/v1/sd/text-to-image', { prompt: `a ${word}!` }], '/prompt'],
  ['a Prompt', (word, { robot }) => [`${finetunes}/${robot}/prompts`, [{ prompt: `robot, ${word}` }]], '/0/prompt'],
  ['a Style and a name', (_, { named, style }) => [`${finetunes}/${named}/styles`, [{ id: style }]], '/0/id'],
  ['a caption', (word) => [finetunes, { ...trained, captions: captionsWith(word) }], '/captions/2'],
  ['the name of a training', (word) => [finetunes, { ...trained, name: `old ${word}` }], '/name'],
  ['its token', (word) => [finetunes, { ...trained, token: word, captions: captionsWith('hat') }], '/name'],
  [
    'a Prompt of a training',
    (word) => [finetunes, { ...trained, prompts: [{ prompt: `a robot, ${word}` }] }],
    '/prompts/0/prompt',
  ],
  [
    'a Prompt of fetched weights',
    (word) => [finetunes, { ...fetched, prompts: [{ prompt: `a robot, ${word}` }] }],
    '/prompts/0/prompt',
  ],
  [
    'a Style of fetched weights',
    (word, { style }) => [finetunes, { ...fetched, name: word, styles: [{ id: style }] }],
    '/styles/0/id',
  ],
];

describe('A text that is not wanted', () => {
  const moderation = ofSuite(startModeration);
  const api = ofSuite(() =>
    startTestApi({ PROMPT_RULES: rules, MODERATION_URL: moderation.url, PICTURES_ALLOW_PRIVATE: 'true' }),
  );
  const key = ofSuite(() => api.createKey());
  const made = new Map<string, Made>();
  let picture: Buffer;

  beforeAll(async () => {
    picture = await sharp({ create: { width: 64, height: 64, channels: 3, background: 'red' } })
      .png()
      .toBuffer();
    const robot = (await makeFinetune(api, key)).id;
    const [{ id }] = await makePrompts(api, key, robot);
    const body = { name: 'mine', styles: [{ id, name: 'gun' }] };
    const collection = await api.request<{ id: string }>('POST', '/v1/prompts/collections', { key, body });
    for (const [word] of refusals) {
      const named = (await makeFinetune(api, key, { name: word, model: 'shapes' })).id;
      made.set(word, { robot, named, style: collection.body.id });
    }
    // Others may have one for a moment.
    moderation.behaviour.onAsked = () => until(async () => !(await hasOpenTransaction()), 'none is open', 3_000);
  });

  const hasOpenTransaction = async (): Promise<boolean> => {
    const [{ count }] = await api.dataSource.query<[{ count: number }]>(
      `SELECT count(*)::int AS count FROM pg_stat_activity
       WHERE datname = current_database() AND state LIKE 'idle in transaction%'`,
    );
    return count > 0;
  };
  const counts = async () => {
    const [row] = await api.dataSource.query<object[]>(
      `SELECT (SELECT count(*) FROM tasks) AS tasks, (SELECT count(*) FROM finetunes) AS finetunes,
         (SELECT count(*) FROM uploaded_pictures) AS uploads`,
    );
    return row;
  };
  const idempotent = () => ({ 'idempotency-key': String(Math.random()) });

  describe.each(refusals)('for its word %j', (word, sentence) => {
    it.each(ways)('is refused where it comes in %s, and nothing is made', async (_, requestOf, pointer) => {
      const [path, body] = requestOf(word, made.get(word)!);
      const before = await counts();
      const refused = await api.request<ProblemJson>('POST', path, { key, body, headers: idempotent() });
      const errors = [{ pointer, message: `is refused: ${sentence}` }];
      expect(refused).toMatchObject({ status: 422, body: { code: 'PromptRefused', detail: sentence, errors } });
      expect(await counts()).toEqual(before);
    });

    it("is refused to OpenAI's clients as their errors are, and no picture of an edit is kept", async () => {
      const openai = new OpenAI({ apiKey: key.token, baseURL: `${api.baseUrl}/v1`, maxRetries: 0 });
      const prompt = `a ${word}`;
      const before = await counts();
      const options = () => ({ headers: idempotent() });
      const image = await toFile(picture, 'picture.png', { type: 'image/png' });
      for (const draw of [
        () => openai.images.generate({ prompt }, options()),
        () => openai.images.edit({ image, prompt }, options()),
      ]) {
        const drawing = draw();
        await expect(drawing).rejects.toMatchObject({ status: 422, code: 'PromptRefused', param: 'prompt' });
        await expect(drawing).rejects.toThrow(sentence);
      }
      const images = [{ image_url: `data:image/png;base64,${picture.toString('base64')}` }];
      const sent = { key, body: { prompt, images }, headers: idempotent() };
      const json = await api.request<{ error: object }>('POST', '/v1/images/edits', sent);
      expect(json).toMatchObject({ status: 422, body: { error: { code: 'PromptRefused', param: 'prompt' } } });
      expect(await counts()).toEqual(before);
    });

    it('is refused to agents in the same words', async () => {
      const client = new Client({ name: 'test', version: '1' });
      const requestInit = { headers: { authorization: `Bearer ${key.token}` } };
      await client.connect(new StreamableHTTPClientTransport(new URL(`${api.baseUrl}/mcp`), { requestInit }));
      for (const call of [
        { name: 'draw', arguments: { prompt: `a ${word}` } },
        { name: 'train', arguments: { ...trained, name: word } },
      ]) {
        const text: unknown = expect.stringContaining(sentence);
        expect(await client.callTool(call)).toMatchObject({ isError: true, content: [{ text }] });
      }
      await client.close();
    });

    it.each<Way>([
      ['a negative prompt', () => ['/v1/sd/text-to-image', { prompt: 'a rose', negative_prompt: word }], ''],
      ['metadata', () => ['/v1/sd/text-to-image', { prompt: 'a rose', metadata: { word } }], ''],
      ['a user', () => ['/v1/sd/text-to-image', { prompt: 'a rose', user: word }], ''],
      ['the title of a Fine-Tune', () => [finetunes, { name: 'robot', title: word }], ''],
      ['the name of a Collection', () => ['/v1/prompts/collections', { name: word, styles: [] }], ''],
    ])('is taken as %s, which is not drawn', async (_, requestOf) => {
      const [path, body] = requestOf(word, made.get(word)!);
      expect((await api.request('POST', path, { key, body })).status).toBe(201);
    });
  });
});
