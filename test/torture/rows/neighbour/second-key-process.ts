import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import type { Samples, SecondKeyOrder } from './second-key';

/**
 * The other key, in a process of its own, so that the load on the hostile sender's process does not affect it. It
 * measures from `begin` to `end`, then waits for open requests and reports its results.
 */
class SecondKey {
  private agent = new Agent();
  private running = false;
  private loops: Promise<void>[] = [];
  private open: Promise<unknown>[] = [];
  private samples: Samples;

  constructor(private readonly order: SecondKeyOrder) {}

  begin(): void {
    const { everyMs, recordUrl, pictureUrl } = this.order;
    this.samples = { getMs: [], pictureMs: [], statuses: {}, timeouts: [], broken: [], drawn: [], unfinished: 0 };
    this.agent = new Agent({ keepAlive: true });
    this.running = true;
    this.open = [];
    this.loops = [this.repeat(everyMs, recordUrl), this.repeat(2 * everyMs, pictureUrl), this.draw()];
  }

  async end(): Promise<Samples> {
    this.running = false;
    await Promise.all(this.loops);
    await Promise.all(this.open);
    this.agent.destroy();
    return this.samples;
  }

  private async repeat(everyMs: number, url: string): Promise<void> {
    for (let next = performance.now(); this.running; next += everyMs) {
      const startedAt = performance.now();
      this.open.push(this.ask('GET', url).then(() => this.samples.getMs.push(performance.now() - startedAt)));
      await delay(Math.max(1, next + everyMs - performance.now()));
    }
  }

  private async draw(): Promise<void> {
    const { generationsUrl, drawPatienceMs, pauseMs, pollMs } = this.order;
    for (; this.running; await delay(pauseMs)) {
      const startedAt = performance.now();
      const body = JSON.stringify({ prompt: 'a red circle on a blue background', model: 'shapes', steps: 2 });
      const made = await this.ask('POST', generationsUrl, body);
      if (made.status !== 201) continue;
      const { id } = JSON.parse(made.text) as { id: string };
      this.samples.drawn.push(id);
      for (;;) {
        const { text: record } = await this.ask('GET', `${generationsUrl}/${id}`);
        const elapsedMs = performance.now() - startedAt;
        const over = record.includes('"status":"succeeded"');
        if (over) this.samples.pictureMs.push(elapsedMs);
        const isLost = /"status":"(failed|canceled)"/.test(record) || elapsedMs > drawPatienceMs;
        if (isLost) this.samples.unfinished++;
        if (over || isLost) break;
        await delay(pollMs);
      }
    }
  }

  private async ask(
    method: string,
    url: string,
    body?: string,
    again = true,
  ): Promise<{ status: number; text: string }> {
    const { samples, order } = this;
    const answer = { status: 0, text: '' };
    const headers = {
      authorization: `Bearer ${order.token}`,
      ...(body && { 'content-type': 'application/json' }),
    };
    const signal = AbortSignal.timeout(order.patienceMs);
    const sent = request(url, { method, headers, agent: again && this.agent, signal });
    sent.on('error', () => undefined).end(body);
    let hasBegun = false;
    try {
      const [response] = (await once(sent, 'response')) as [IncomingMessage];
      hasBegun = true;
      answer.text = await text(response);
      answer.status = response.statusCode ?? 0;
    } catch (error) {
      // The server may close an idle connection at the moment it is used again. The second attempt opens a new one.
      if (!signal.aborted && !hasBegun && sent.reusedSocket && again) return this.ask(method, url, body, false);
      const what = `${method} ${new URL(url).pathname.slice(0, 40)}`;
      if (signal.aborted) samples.timeouts.push(what);
      else samples.broken.push(`${what}${hasBegun ? ', amid the answer' : ''}: ${(error as Error).message}`);
    }
    samples.statuses[answer.status] = (samples.statuses[answer.status] ?? 0) + 1;
    return answer;
  }
}

let key: SecondKey | undefined;
process.on('message', (message: SecondKeyOrder | 'begin' | 'end') => {
  if (message === 'begin') key!.begin();
  else if (message === 'end') void key!.end().then((samples) => process.send!(samples));
  else key = new SecondKey(message);
});
process.on('disconnect', () => process.exit());
