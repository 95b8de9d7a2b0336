import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import sharp from 'sharp';
import { startTestApi, type TestKey } from '../support/api';
import { makeFinetune } from '../support/factories';
import { ofSuite } from '../support/of-suite';
import { receiversOfSuite } from '../support/receiver';
import { until } from '../support/until';

/** What a request of a row led to. */
interface Answer {
  status: number | string;
  body: unknown;
}

const spansOf = (cell: string): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, text]) => text);
const rows = readFileSync(join(__dirname, 'specification.md'), 'utf8')
  .split('\n')
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .filter(([, number]) => /^\d+$/.test(number))
  .map(([, number, statement, requests, answer]) => ({
    title: `${number}. ${statement}`,
    requests: spansOf(requests),
    answer: spansOf(answer)[0],
  }));

const words: Readonly<Record<string, (value: unknown) => boolean>> = {
  any: () => true,
  array: Array.isArray,
  boolean: (value) => typeof value === 'boolean',
  decimal: (value) => /^\d+(\.\d*[1-9])?$/.test(value as string) && typeof value === 'string',
  digits: (value) => /^\d+$/.test(value as string) && typeof value === 'string',
  integer: Number.isInteger,
  null: (value) => value === null,
  number: (value) => typeof value === 'number',
  string: (value) => typeof value === 'string',
  time: (value) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value as string),
  url: (value) => typeof value === 'string' && URL.canParse(value),
};

/** @returns the places where a value differs from its pattern */
function differences(value: unknown, pattern: unknown, place = ''): string[] {
  const wrong = [`${place || '/'} is ${JSON.stringify(value)} instead of ${JSON.stringify(pattern)}`];
  const word = typeof pattern === 'string' && /^<(.+)>$/.exec(pattern)?.[1];
  if (word) return word.split(' or ').some((each) => words[each](value)) ? [] : wrong;
  if (pattern === null || typeof pattern !== 'object') return value === pattern ? [] : wrong;
  if (Array.isArray(pattern)) {
    if (!Array.isArray(value)) return wrong;
    const elements = (pattern as unknown[]).filter((element) => element !== '…');
    if (elements.length < pattern.length) while (elements.length < value.length) elements.push(elements.at(-1));
    if (elements.length !== value.length) return wrong;
    return elements.flatMap((element, i) => differences(value[i], element, `${place}/${i}`));
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return wrong;
  const { '…': others, ...fields } = pattern as Record<string, unknown>;
  const unknown = others ? [] : Object.keys(value).filter((name) => !(name in fields));
  return [
    ...unknown.map((name) => `${place}/${name} is not in the specification`),
    ...Object.entries(fields).flatMap(([name, field]) =>
      differences((value as Record<string, unknown>)[name], field, `${place}/${name}`),
    ),
  ];
}

describe('The specification', () => {
  const api = ofSuite(startTestApi);
  const startReceiver = receiversOfSuite();

  /** Sends the requests of one row, with records of their own. */
  class Row {
    private readonly ids = new Map<string, unknown>([['unknown', 'A'.repeat(24)]]);
    private answers = 0;
    private posted?: () => Promise<unknown>;

    constructor(private readonly key: TestKey) {}

    /** Makes what a name stands for. */
    private async make(name: string): Promise<unknown> {
      const finetune = async () => `/v1/finetunes/${(await this.valueOf('finetune')) as string}/prompts`;
      const post = async (path: string, body: unknown) =>
        (await api.request<never>('POST', path, { key: this.key, body })).body as { id: string }[] & { id: string };
      if (name === 'finetune') return (await makeFinetune(api, this.key)).id;
      if (name === 'generation') return (await post('/v1/sd/text-to-image', { prompt: 'a robot' })).id;
      if (name === 'prompt') return (await post(await finetune(), [{ prompt: 'a robot' }]))[0].id;
      if (name === 'drawn') {
        const [path, id] = [await finetune(), await this.valueOf('prompt')];
        await this.ended(`${path}/${id as string}`);
        return id;
      }
      if (name === 'collection') {
        const id = await this.valueOf('drawn');
        const styles = [{ id, name: 'night' }, { id, name: 'day' }]; // prettier-ignore
        return (await post('/v1/prompts/collections', { name: 'scenes', styles })).id;
      }
      if (name === 'style') {
        const path = `/v1/prompts/collections/${(await this.valueOf('collection')) as string}/styles`;
        return (await api.request<{ id: string }[]>('GET', path, { key: this.key })).body[0].id;
      }
      if (name !== 'webhook') throw new Error(`Nothing is called $${name}.`);
      const receiver = await startReceiver();
      this.posted = async () => JSON.parse((await receiver.next(1)).body) as unknown;
      return `${receiver.url}/hook`;
    }

    private async valueOf(reference: string): Promise<unknown> {
      const [name, ...path] = reference.split('.');
      if (!this.ids.has(name)) this.ids.set(name, await this.make(name));
      return path.reduce<unknown>((value, part) => (value as Record<string, unknown>)[part], this.ids.get(name));
    }

    /** Writes what `$name` and `$1.0.id` stand for. */
    async filled(text: string): Promise<string> {
      for (const [whole, reference] of [...text.matchAll(/"?\$(\w+(?:\.\w+)*)"?/g)]) {
        const value = await this.valueOf(reference);
        const isAlone = whole.startsWith('"') && whole.endsWith('"');
        text = text.replace(whole, () =>
          isAlone ? JSON.stringify(value) : whole.replace(`$${reference}`, String(value)),
        );
      }
      return text;
    }

    private ended(path: string): Promise<Answer> {
      return until(async () => {
        const reply = await api.request<Record<string, unknown>>('GET', path, { key: this.key });
        const { images, error, error_message } = reply.body as { images: string[]; [name: string]: unknown };
        return images.length > 0 || error || error_message ? reply : undefined;
      }, 'it has ended');
    }

    async send(step: string): Promise<Answer> {
      const answer = await this.answerTo(await this.filled(step));
      this.ids.set(String(++this.answers), answer.body);
      return answer;
    }

    private async answerTo(step: string): Promise<Answer> {
      if (step === 'webhook') return { status: 'posted', body: await this.posted!() };
      if (step.startsWith('picture: ')) {
        const response = await fetch(`${api.baseUrl}${new URL(step.slice('picture: '.length)).pathname}`);
        const { width, height } = await sharp(Buffer.from(await response.arrayBuffer())).metadata();
        return { status: response.status, body: { width, height } };
      }
      const [, who, method, path, rest] = /^(?:([a-z ]+): )?([A-Z]+) (\S+)(?: (.+))?$/.exec(step)!;
      if (rest === 'until it has ended') return this.ended(path);
      const key = who === 'anonymous' ? undefined : who === 'other caller' ? await api.createKey() : this.key;
      const reply = await api.request(method, path, {
        key: who === 'wrong key' ? { token: `${this.key.token}x` } : key,
        ...(rest && { raw: rest, headers: { 'content-type': who === 'text' ? 'text/plain' : 'application/json' } }),
      });
      return { status: reply.status, body: reply.body };
    }
  }

  it.each(rows.map((row) => [row.title, row] as const))('%s', async (_title, { requests, answer }) => {
    const row = new Row(await api.createKey({ sandbox: true }));
    let last: Answer | undefined;
    for (const request of requests) last = await row.send(request);
    const [, status, pattern] = /^(\S+) (.+)$/.exec(await row.filled(answer))!;
    expect(differences(last!.body, JSON.parse(pattern))).toEqual([]);
    expect(String(last!.status)).toMatch(new RegExp(`^${status.replaceAll('x', '\\d')}$`));
  });
});
