import type { WebhookDeliveryDto } from '@app/domain/http';
import { WebhookDelivery } from '@app/domain';
import { failuresToOpen, hostConcurrency } from '../../apps/api/src/webhooks/receiver-gate';
import { itOnce } from '../support/back-ends';
import { startTestApi } from '../support/api';
import { receiversOfSuite } from '../support/receiver';
import { until } from '../support/until';
import { ofSuite } from '../support/of-suite';

describe('The webhook log', () => {
  const api = ofSuite(startTestApi);
  const key = ofSuite(() => api.createKey());

  const receiver = receiversOfSuite();

  const create = async (webhook?: string, as = key): Promise<string> => {
    const body = { prompt: 'a star', ...(webhook && { webhook }) };
    const { body: created } = await api.request<{ id: string }>('POST', '/v1/sd/text-to-image', { key: as, body });
    return created.id;
  };

  /** A canceled Generation is terminated, and needs no worker. */
  const terminate = async (webhook: string, as = key): Promise<string> => {
    const id = await create(webhook, as);
    await api.request('POST', `/v1/sd/text-to-image/${id}/cancel`, { key: as });
    return id;
  };

  const logOf = async (id: string): Promise<WebhookDeliveryDto[]> =>
    (await api.request<WebhookDeliveryDto[]>('GET', `/v1/sd/text-to-image/${id}/deliveries`, { key })).body;

  const deliveryOf = (id: string, wanted: (delivery: WebhookDeliveryDto) => boolean): Promise<WebhookDeliveryDto> =>
    until(async () => {
      const [delivery] = await logOf(id);
      return delivery && wanted(delivery) && delivery;
    }, 'the delivery is as wanted');

  const redeliver = (id: string, deliveryId: string) =>
    api.request<WebhookDeliveryDto>('POST', `/v1/sd/text-to-image/${id}/deliveries/${deliveryId}/redeliver`, { key });

  itOnce('shows the last 100 attempts', async () => {
    const id = await terminate('http://127.0.0.1:9/');
    const { id: deliveryId } = await deliveryOf(id, ({ attempts }) => attempts.length > 0);
    await api.dataSource.query(
      `INSERT INTO webhook_attempts (id, delivery_id, started_at, duration_ms, status_code)
       SELECT 'many-' || i, $1, now() + i * interval '1 hour', i, 500 FROM generate_series(1, 120) AS i`,
      [deliveryId],
    );
    const [{ attempts }] = await logOf(id);
    expect(attempts.map(({ duration_ms }) => duration_ms)).toEqual(Array.from({ length: 100 }, (_, i) => i + 21));
  });

  itOnce('is empty while no delivery is pending', async () => {
    expect(await logOf(await create('http://127.0.0.1:9/'))).toEqual([]);
  });

  itOnce(
    'shows every attempt with its status, its error with the beginning of the response, and its time',
    async () => {
      let release = (): void => undefined;
      const isSeen = new Promise<void>((resolve) => (release = resolve));
      const { url } = await receiver((_, response, count) => {
        if (count === 1) response.writeHead(500).end('no\u0000 disk\nleft');
        // The second attempt does not end before the log has been read with one attempt.
        else void isSeen.then(() => response.writeHead(200).end('fine'));
      });
      const id = await terminate(url);
      const pending = await deliveryOf(id, ({ attempts }) => attempts.length === 1);
      expect(pending).toEqual({
        id: pending.id,
        url,
        status: 'pending',
        attempts: [
          {
            status_code: 500,
            error: 'The receiver answered 500: no disk left.',
            duration_ms: expect.any(Number) as number,
            started_at: expect.stringMatching(/Z$/) as string,
          },
        ],
        next_attempt_at: expect.stringMatching(/Z$/) as string,
        created_at: expect.stringMatching(/Z$/) as string,
        completed_at: null,
      });
      expect(pending.attempts[0].duration_ms).toBeGreaterThanOrEqual(0);
      release();
      const delivered = await deliveryOf(id, ({ status }) => status === 'delivered');
      expect(delivered.attempts.map(({ status_code }) => status_code)).toEqual([500, 200]);
      expect(delivered).toMatchObject({ next_attempt_at: null, completed_at: expect.stringMatching(/Z$/) as string });
    },
  );

  itOnce('reads at most 64 kB of a response', async () => {
    let sent = 0;
    const { url } = await receiver((_, response) => {
      response.writeHead(500);
      const pump = (): void => {
        if (response.destroyed) return;
        sent += 65_536;
        response.write('x'.repeat(65_536), () => setImmediate(pump));
      };
      pump();
    });
    const { attempts } = await deliveryOf(await terminate(url), (delivery) => delivery.attempts.length > 0);
    expect(attempts[0].error).toBe(`The receiver answered 500: ${'x'.repeat(200)} ….`);
    // The socket buffers may hold bytes that were written and not read.
    expect(sent).toBeLessThan(20 * 2 ** 20);
  });

  describe('redeliver', () => {
    it('repeats a delivered one at once under the same id', async () => {
      const { url, next, received } = await receiver();
      const id = await terminate(url);
      const first = await deliveryOf(id, ({ status }) => status === 'delivered');
      const reply = await redeliver(id, first.id);
      expect(reply.status).toBe(201);
      expect(reply.body).toMatchObject({ id: first.id, status: 'pending', completed_at: null });
      await next(2);
      const second = await deliveryOf(id, ({ attempts }) => attempts.length === 2);
      expect(second.status).toBe('delivered');
      expect(received[1].headers['webhook-id']).toBe(first.id);
      expect(received[1].body).toBe(received[0].body);
    });

    it('repeats a failed one', async () => {
      const { url } = await receiver((_, response, count) => response.writeHead(count === 1 ? 410 : 200).end());
      const id = await terminate(url);
      const failed = await deliveryOf(id, ({ status }) => status === 'failed');
      expect((await redeliver(id, failed.id)).status).toBe(201);
      await deliveryOf(id, ({ status, attempts }) => status === 'delivered' && attempts.length === 2);
    });

    it('brings a pending one forward, and no attempt is made at its old time', async () => {
      const { url, received } = await receiver((_, response, count) =>
        response.writeHead(count === 1 ? 503 : 200, { 'retry-after': '3600' }).end(),
      );
      const id = await terminate(url);
      const pending = await deliveryOf(id, ({ attempts }) => attempts.length === 1);
      await redeliver(id, pending.id);
      await deliveryOf(id, ({ status }) => status === 'delivered');
      expect(received).toHaveLength(2);
    });

    it('logs both attempts when it is requested during one', async () => {
      let release = (): void => undefined;
      const { url, next } = await receiver((_, response, count) => {
        if (count === 1) release = () => response.writeHead(500).end();
        else response.writeHead(200).end();
      });
      const id = await terminate(url);
      await next(1);
      const [{ id: deliveryId }] = await logOf(id);
      await redeliver(id, deliveryId);
      await next(2);
      release();
      const { attempts, status } = await deliveryOf(id, (delivery) => delivery.attempts.length === 2);
      expect(attempts.map(({ status_code }) => status_code)).toEqual([500, 200]);
      expect(status).toBe('delivered');
    });

    itOnce('makes its attempt however old the delivery and however busy its receiver', async () => {
      let isSlow = false;
      const held: (() => void)[] = [];
      const { url } = await receiver((_, response) => {
        if (isSlow) held.push(() => response.writeHead(200).end());
        else response.writeHead(410).end();
      });
      const id = await terminate(url);
      const failed = await deliveryOf(id, ({ status }) => status === 'failed');
      const fiveDaysAgo = new Date(Date.now() - 5 * 24 * 3_600_000);
      await api.dataSource.manager.update(WebhookDelivery, { id: failed.id }, { createdAt: fiveDaysAgo });
      isSlow = true;
      for (let i = 0; i < hostConcurrency; i++) await terminate(url);
      await until(async () => held.length === hostConcurrency, 'the receiver has all it may have at once');
      await redeliver(id, failed.id);
      // Postponed because no place was free: this counts as no attempt.
      await until(async () => {
        const row = await api.dataSource.manager.findOneByOrFail(WebhookDelivery, { id: failed.id });
        return row.status !== 'pending' || (row.nextAttemptAt?.getTime() ?? 0) > Date.now();
      }, 'it has looked for a place');
      isSlow = false;
      for (const answer of held) answer();
      const tried = await deliveryOf(id, ({ attempts }) => attempts.length === 2);
      expect(tried.attempts[1].status_code).toBe(410);
    });

    itOnce('answers 404 for a delivery of another Generation', async () => {
      const { url } = await receiver();
      const delivery = await deliveryOf(await terminate(url), ({ status }) => status === 'delivered');
      const { status, body } = await redeliver(await terminate(url), delivery.id);
      expect([status, body]).toEqual([404, expect.objectContaining({ code: 'DeliveryNotFound' })]);
    });
  });

  it('does not let a receiver that never answers delay another, nor another caller with the same receiver', async () => {
    let open = 0;
    let maxOpen = 0;
    const silent = await receiver((_, response) => {
      maxOpen = Math.max(maxOpen, ++open);
      response.once('close', () => open--);
    });
    const quick = await receiver();
    const owed = 60;
    for (let i = 0; i < owed; i++) await terminate(silent.url);
    await silent.next(hostConcurrency);
    const startedAt = performance.now();
    await terminate(quick.url);
    await quick.next(1);
    expect(maxOpen).toBe(hostConcurrency);
    const id = await terminate(silent.url, await api.createKey());
    const ofOther = () => silent.received.some(({ body }) => (JSON.parse(body) as { id: string }).id === id);
    await until(async () => ofOther(), 'the other caller has its own attempt');
    const elapsedMs = performance.now() - startedAt;
    // They overtook most of the others, whose first attempt has not begun. On a slow machine some attempts have ended.
    expect(silent.received.length).toBeLessThan(owed / 2);
    // And none was postponed. An attempt at the silent receiver takes 15 s.
    expect(elapsedMs).toBeLessThan(10_000);
  });

  itOnce('leaves a repeatedly failing receiver alone, but tries it on request', async () => {
    const dead = await receiver((_, response) => response.writeHead(500).end());
    const ids: string[] = [];
    for (let i = 0; i < failuresToOpen; i++) ids.push(await terminate(dead.url));
    for (const id of ids) await deliveryOf(id, ({ attempts }) => attempts.length > 0);
    const id = await terminate(dead.url);
    // Postponed, not attempted: its next attempt is in the future, and the log has none.
    const skipped = await until(async () => {
      const row = await api.dataSource.manager.findOneBy(WebhookDelivery, { taskId: id });
      return (row?.nextAttemptAt?.getTime() ?? 0) > Date.now() + 2_000 ? (row ?? undefined) : undefined;
    }, 'the delivery is put off');
    expect(skipped).toMatchObject({ status: 'pending', attemptCount: 0 });
    await redeliver(id, skipped.id);
    const tried = await deliveryOf(id, ({ attempts }) => attempts.length === 1);
    expect(tried.attempts[0].status_code).toBe(500);

    // A redelivery that was requested and whose process died: who claims it next tries the receiver too.
    await api.dataSource.manager.update(
      WebhookDelivery,
      { id: skipped.id },
      { askedAt: new Date(), nextAttemptAt: new Date(), claimedUntil: new Date() },
    );
    const again = await deliveryOf(id, ({ attempts }) => attempts.length === 2);
    expect(again.attempts[0].status_code).toBe(500);
  });
});
