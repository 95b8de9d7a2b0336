import { createHmac } from 'node:crypto';
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { TestKey } from '../support/api';
import { freePort } from '../support/free-port';
import { blocksOf, type GuideBlock, printed } from '../support/guide-blocks';
import { type GuideProgram, startProgram, untilListening, whyNot } from '../support/guide-programs';
import { trainableModels } from '../support/quick-model';
import { startTestService, type TestService } from '../support/service';
import { Trainer } from '../support/trainings';
import { until } from '../support/until';

const root = resolve(__dirname, '..', '..');
const weights = join(root, 'test', 'golden', 'models', 'lora', 'zwx-robot-diffusers.safetensors');
const pages = readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md') && blocksOf(name).length > 0);
/** A browser's EventSource, where the page was loaded from `ORIGIN`. */
const browser = `import { EventSource as OfBrowser } from ${JSON.stringify(join(root, 'node_modules/eventsource/dist/index.js'))};
const { ID, ORIGIN } = process.env;
class EventSource extends OfBrowser {
  constructor(path) {
    super(new URL(path, ORIGIN));
  }
}
`;

jest.setTimeout(600_000);

describe('The programs of docs', () => {
  let service: TestService;

  beforeAll(async () => {
    const port = String(await freePort());
    const env = { PORT: port, PUBLIC_URL: `http://127.0.0.1:${port}`, MODELS_DIR: trainableModels() };
    service = await startTestService({ env });
  });

  afterAll(() => service.close());

  describe.each(pages)('%s', (page) => {
    let key: TestKey;
    /** As a clone of the repository, with the folder `try` in which the pages have their programs run. */
    let clone = '';
    let folder = '';
    let env: Record<string, string>;
    /** Programs that may still run. */
    const programs: GuideProgram[] = [];

    beforeAll(async () => {
      key = await service.createKey();
      clone = mkdtempSync(join(tmpdir(), 'darkroom-guide-'));
      for (const name of ['node_modules', 'docs']) symlinkSync(join(root, name), join(clone, name));
      folder = join(clone, 'try');
      mkdirSync(folder);
      copyFileSync(weights, join(folder, 'robot.safetensors'));
      env = {
        PATH: process.env.PATH!,
        HOME: process.env.HOME ?? clone,
        DARKROOM_URL: service.baseUrl,
        DARKROOM_API_KEY: key.token,
        DARKROOM_WEBHOOK_SECRET: key.webhookSecret,
      };
    });

    afterAll(async () => {
      await Promise.all(programs.map((program) => program.end()));
      if (clone) rmSync(clone, { recursive: true });
    });

    const start = (block: GuideBlock, port?: number): GuideProgram => {
      const program = startProgram(block, folder, env, port);
      programs.push(program);
      return program;
    };

    /** Runs a program that ends, and checks what it prints. */
    const run = async (block: GuideBlock): Promise<void> => {
      const program = start(block);
      const code = await program.ended;
      expect([code, program.errors()]).toEqual([0, '']);
      expect(program.output().trimEnd()).toMatch(printed(block.prints ?? ''));
    };

    const post = (port: number, body: string, headers: Record<string, string>) =>
      fetch(`http://127.0.0.1:${port}/hooks/darkroom`, { method: 'POST', body, headers });

    /**
     * Has a Prompt's webhook posted. Its record is all that a receiver gets: neither a status nor the id of the
     * Fine-Tune.
     */
    const drawPrompt = async (address: string): Promise<void> => {
      const { body: finetune } = await service.request<{ id: string }>('POST', '/v1/finetunes', {
        key,
        body: { name: 'robot', model: 'shapes', token: 'ohwx' },
      });
      const prompt = { prompt: 'a robot on a red background', steps: 2, webhook: `${address}${finetune.id}` };
      const made = await service.request('POST', `/v1/finetunes/${finetune.id}/prompts`, { key, body: [prompt] });
      expect(made.status).toBe(201);
    };

    /** Runs a receiver of webhooks: it takes the service's, and nothing else. */
    const receive = async (block: GuideBlock): Promise<void> => {
      const port = await freePort();
      const program = start(block, port);
      try {
        await untilListening(program, port);
        const webhook = `http://127.0.0.1:${port}/hooks/darkroom`;
        const { body } = await service.request<{ id: string }>('POST', '/v1/sd/text-to-image', {
          key,
          body: { prompt: 'a red circle', steps: 2, webhook },
        });
        const attempt = await until(async () => {
          const log = await service.request<{ attempts: { status_code: number | null }[] }[]>(
            'GET',
            `/v1/sd/text-to-image/${body.id}/deliveries`,
            { key },
          );
          return log.body[0]?.attempts[0];
        }, 'the webhook was delivered');
        expect(attempt.status_code).toBe(204);
        await drawPrompt(`${webhook}?finetune=`);
        await until(async () => program.output().includes('a robot on a red background'), 'the Prompt was printed');
        const trainer = new Trainer(service, key);
        const { id } = await trainer.train({ images_url: await trainer.upload(), webhook });
        await trainer.post(id, 'cancel');
        await until(async () => printed(block.prints!).test(program.output().trimEnd()), 'all webhooks were printed');

        const record = JSON.stringify({ status: 'succeeded', prompt: 'a forged circle', images: [] });
        const now = Math.floor(Date.now() / 1000);
        const signed = (timestamp: number, secret = key.webhookSecret, body = record) => {
          const hmac = createHmac('sha256', Buffer.from(secret.replace('whsec_', ''), 'base64'));
          return {
            'webhook-id': 'msg',
            'webhook-timestamp': String(timestamp),
            'webhook-signature': `v1,${hmac.update(`msg.${timestamp}.${body}`).digest('base64')}`,
          };
        };
        const [genuine, other] = [signed(now), signed(now, `whsec_${Buffer.alloc(32).toString('base64')}`)];
        const both = `${other['webhook-signature']} ${genuine['webhook-signature']}`;
        const refused: [string, string, Record<string, string>][] = [
          ['another secret', record, other],
          ['another body', record.replace('forged', 'faked'), genuine],
          ['too old', record, signed(now - 600)],
          ['from the future', record, signed(now + 600)],
          ['no time', record, { ...genuine, 'webhook-timestamp': 'x' }],
          [
            'another version',
            record,
            { ...genuine, 'webhook-signature': genuine['webhook-signature'].replace('v1', 'v2') },
          ],
          ['half a signature', record, { ...genuine, 'webhook-signature': 'v1,' }],
          ['no header', record, {}],
        ];
        for (const [label, sent, headers] of refused)
          expect([label, (await post(port, sent, headers)).status]).toEqual([label, 400]);
        expect(program.output().trimEnd()).toMatch(printed(block.prints!));
        expect((await post(port, record, { ...genuine, 'webhook-signature': both })).status).toBe(204);
        await until(
          async () => program.output().includes('a forged circle'),
          'it has two signatures, one of them right',
        );
        for (const [error_message, line] of [
          ['no paint left', 'no paint left: a dry circle'],
          [null, 'canceled: a dry circle'],
        ]) {
          const dry = JSON.stringify({ prompt: 'a dry circle', images: [], metadata: null, error_message });
          expect((await post(port, dry, signed(now, key.webhookSecret, dry))).status).toBe(204);
          await until(async () => program.output().includes(line!), `it prints "${line}"`);
        }
      } finally {
        await program.end();
      }
    };

    /** Why what a page does in its terminal cannot be done here: its later programs have variables from there. */
    let noTerminal: string | undefined;

    for (const block of blocksOf(page)) {
      const { language, role, line } = block;
      const title = `line ${line}: ${language}${role ? `, ${role}` : ''}`;
      if (language === 'json') {
        it(title, () => expect(typeof JSON.parse(block.source)).toBe('object'));
        continue;
      }
      const reason = noTerminal ?? whyNot(block);
      if (language === 'bash') noTerminal = reason;
      if (reason) {
        it.skip(`${title} (${reason})`, () => undefined);
        continue;
      }
      it(title, async () => {
        if (role === 'receiver') await receive(block);
        else if (role === 'server') {
          const port = await freePort();
          await untilListening(start(block, port), port);
          env.ORIGIN = `http://127.0.0.1:${port}`;
        } else if (role === 'browser') await run({ ...block, source: `${browser}${block.source}` });
        else await run(block);
      });
    }
  });
});
