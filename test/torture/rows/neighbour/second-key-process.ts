import { Agent, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { Samples, SecondKeyOrder } from './second-key';

/**
 * The other key, in a process of its own, so that the load on the hostile sender's process does not affect it. It
 * measures from `begin` to `end`, then waits for open requests and reports its results.
 */
class SecondKey {
  private agent = new Agent();
  private running = false;
  private under: Promise<unknown>[] = [];
  private samples: Samples;

  constructor(private readonly order: SecondKeyOrder) {}

  begin(): void {
    this.agent = new Agent({ keepAlive: true });
    this.samples = { getMs: [], pictureMs: [], statuses: {}, timeouts: [], broken: [], drawn: [], unfinished: 0 };
    this.running = true;
    this.under = [
      this.repeat(this.order.everyMs, this.order.recordUrl),
      this.repeat(2 * this.order.everyMs, this.order.pictureUrl),
      this.draw(),
    ];
  }

  async end(): Promise<Samples> {
    this.running = false;
    // The loops add to the list only while they run.
    await Promise.all(this.under.slice(0, 3));
    await Promise.all(this.under);
    this.agent.destroy();
    return this.samples;
  }

  private async repeat(everyMs: number, url: string): Promise<void> {
    for (let next = performance.now(); this.running; next += everyMs) {
      this.under.push(this.get(url));
      await delay(Math.max(1, next + everyMs - performance.now()));
    }
  }

  private async get(url: string): Promise<string> {
    const startedAt = performance.now();
    const { text } = await this.ask('GET', url);
    this.samples.getMs.push(performance.now() - startedAt);
    return text;
  }

  private async draw(): Promise<void> {
    for (; this.running; await delay(this.order.pauseMs)) {
      const startedAt = performance.now();
      const body = JSON.stringify({ prompt: 'a red circle on a blue background', model: 'shapes', steps: 2 });
      const { status, text } = await this.ask('POST', this.order.generationsUrl, body);
      if (status !== 201) continue;
      const { id } = JSON.parse(text) as { id: string };
      this.samples.drawn.push(id);
      for (;;) {
        const { text: record } = await this.ask('GET', `${this.order.generationsUrl}/${id}`);
        const elapsedMs = performance.now() - startedAt;
        const over = record.includes('"status":"succeeded"');
        if (over) this.samples.pictureMs.push(elapsedMs);
        const isLost = /"status":"(failed|canceled)"/.test(record) || elapsedMs > this.order.drawPatienceMs;
        if (isLost) this.samples.unfinished++;
        if (over || isLost) break;
        await delay(this.order.pollMs);
      }
    }
  }

  private ask(method: string, url: string, body?: string, again = true): Promise<{ status: number; text: string }> {
    return new Promise((resolve) => {
      const over = (status: number, text = ''): void => {
        this.samples.statuses[status] = (this.samples.statuses[status] ?? 0) + 1;
        resolve({ status, text });
      };
      let late = false;
      const timer = setTimeout(() => {
        late = true;
        this.samples.timeouts.push(`${method} ${new URL(url).pathname.slice(0, 40)}`);
        sent.destroy();
        over(0);
      }, this.order.patienceMs);
      const headers = {
        authorization: `Bearer ${this.order.token}`,
        ...(body && { 'content-type': 'application/json' }),
      };
      const sent = request(url, { method, headers, agent: again && this.agent }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => {
          clearTimeout(timer);
          over(response.statusCode ?? 0, Buffer.concat(chunks).toString());
        });
        response.on('error', ({ message }) => {
          clearTimeout(timer);
          if (late) return;
          this.samples.broken.push(`${method} ${new URL(url).pathname.slice(0, 40)}, amid the answer: ${message}`);
          over(0);
        });
      });
      sent.on('error', ({ message }) => {
        clearTimeout(timer);
        if (late) return;
        // The server may close an idle connection at the moment it is used again. The second attempt opens a new one.
        if (sent.reusedSocket && again) return resolve(this.ask(method, url, body, false));
        this.samples.broken.push(`${method} ${new URL(url).pathname.slice(0, 40)}: ${message}`);
        over(0);
      });
      sent.end(body);
    });
  }
}

let key: SecondKey | undefined;
process.on('message', (message: SecondKeyOrder | 'begin' | 'end') => {
  if (message === 'begin') key!.begin();
  else if (message === 'end') void key!.end().then((samples) => process.send!(samples));
  else key = new SecondKey(message);
});
process.on('disconnect', () => process.exit());
