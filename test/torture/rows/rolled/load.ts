import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Answer, Caller } from '../../caller';
import type { Site } from '../../site';

const pauseMs = 150;
/** More than that would only make the end longer. */
const mostQueued = 20;

/** What a caller of any version does, over and over, until it is told to stop. */
export class Load {
  readonly problems: string[] = [];
  private isOver = false;
  private readonly loops: Promise<void>[];

  constructor(
    private readonly site: Site,
    callers: readonly Caller[],
  ) {
    this.loops = callers.map((caller) =>
      this.loop(caller).catch((error: Error) => void this.problems.push(error.stack ?? error.message)),
    );
  }

  async stop(): Promise<void> {
    this.isOver = true;
    await Promise.all(this.loops);
  }

  private async loop(caller: Caller): Promise<void> {
    const finetune = idOf(await this.expect(caller, 201, 'POST', '/v1/finetunes', { name: 'robot', model: 'shapes' }));
    for (let i = 0; !this.isOver; i++) {
      const id = await this.draw(caller);
      if (id && i % 4 === 0) await caller.end(id, 'canceled');
      if (i % 2 === 0) await this.prompts(caller, finetune);
      if (i % 3 === 0) await this.collection(caller, finetune);
      if (id) await this.expect(caller, 200, 'GET', `/v1/sd/text-to-image/${id}`);
      await this.expect(caller, 200, 'GET', '/v1/sd/text-to-image?limit=5');
      do await delay(pauseMs);
      while (!this.isOver && (await this.queued()) > mostQueued);
    }
  }

  private async queued(): Promise<number> {
    const queued = await this.site.query(`SELECT FROM tasks WHERE status = 'queued'`);
    return queued.length;
  }

  private async draw(caller: Caller): Promise<string | undefined> {
    const key = { 'idempotency-key': randomUUID() };
    const create = () => caller.create({ webhook: this.site.receiver.url, steps: 4 }, key);
    let { id, answer } = await create();
    if (answer.status === 502) ({ id, answer } = await create());
    if (!id) this.problems.push(`a Generation is answered ${answer.status}: ${answer.text.slice(0, 200)}`);
    return id;
  }

  private async prompts(caller: Caller, finetune: string): Promise<void> {
    const one = { prompt: 'a robot', steps: 2, webhook: this.site.receiver.url };
    const path = `/v1/finetunes/${finetune}/prompts`;
    const { status, text } = await this.expect(caller, 201, 'POST', path, [one, one]);
    if (status !== 201) return;
    for (const { id } of JSON.parse(text) as { id: string }[]) this.site.ledger.acknowledge(id, true);
    await this.expect(caller, 200, 'GET', path);
  }

  private async collection(caller: Caller, finetune: string): Promise<void> {
    const { text } = await this.expect(caller, 200, 'GET', `/v1/finetunes/${finetune}/prompts?limit=1`);
    const styles = (JSON.parse(text) as { id: string }[]).map(({ id }) => ({ id, name: 'night' }));
    const path = '/v1/prompts/collections';
    const made = await this.expect(caller, 201, 'POST', path, { name: 'a trip', styles });
    await this.expect(caller, 200, 'GET', path);
    await this.expect(caller, 200, 'DELETE', `${path}/${idOf(made)}`);
  }

  private async expect(caller: Caller, status: number, ...request: Parameters<Caller['request']>): Promise<Answer> {
    const [method, path, body] = request;
    const headers: Record<string, string> = method === 'POST' ? { 'idempotency-key': randomUUID() } : {};
    const ask = () => caller.request(method, path, body, headers);
    let answer = await ask();
    // Callers repeat what a balancer could not pass on, with the same key.
    if (answer.status === 502) answer = await ask();
    if (answer.status !== status)
      this.problems.push(`${method} ${path}: ${answer.status}: ${answer.text.slice(0, 200)}`);
    return answer;
  }
}

export const idOf = ({ text }: Answer): string => (JSON.parse(text) as { id: string }).id;
