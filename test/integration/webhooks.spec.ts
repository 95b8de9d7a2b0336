import { type Config, CONFIG } from '@app/config';
import { WebhookAttempt, WebhookDelivery } from '@app/domain';
import { JsonLogger } from '@app/observability';
import { Webhook } from 'standardwebhooks';
import { failuresToOpen, type ReceiverAnswer, ReceiverGate } from '../../apps/api/src/webhooks/receiver-gate';
import { WebhookSender } from '../../apps/api/src/webhooks/webhook-sender';
import { describeOnce, itOnce } from '../support/back-ends';
import { startTestApi } from '../support/api';
import { type FinetuneJson, makeFinetune } from '../support/factories';
import { flood } from '../support/flood';
import { type Receiver, receiversOfSuite } from '../support/receiver';
import { until } from '../support/until';
import { ofSuite } from '../support/of-suite';

const daysAgo = (days: number): Date => new Date(Date.now() - days * 24 * 3_600_000);

describe('Webhooks', () => {
  const api = ofSuite(startTestApi);
  const key = ofSuite(() => api.createKey());

  const receiver = receiversOfSuite();

  /** A canceled Generation is terminated, and needs no worker. */
  const terminate = async (webhook: string, target = api, owner = key): Promise<string> => {
    const { body } = await target.request<{ id: string }>('POST', '/v1/sd/text-to-image', {
      key: owner,
      body: { prompt: 'a star', webhook, metadata: { order: 7 } },
    });
    await target.request('POST', `/v1/sd/text-to-image/${body.id}/cancel`, { key: owner });
    return body.id;
  };

  const deliveryOf = (generationId: string, wanted: (delivery: WebhookDelivery) => boolean, target = api) =>
    until(async () => {
      const found = await target.dataSource.manager.findOneBy(WebhookDelivery, { taskId: generationId });
      return found && wanted(found) ? found : undefined;
    }, 'the delivery is as wanted');

  it('posts exactly what GET returns, signed so that standardwebhooks verifies it', async () => {
    const { url, next } = await receiver();
    const id = await terminate(`${url}/hook?a=1`);
    const { path, headers, body } = await next(1);
    expect(path).toBe('/hook?a=1');
    const found = await api.request('GET', `/v1/sd/text-to-image/${id}`, { key });
    expect(body).toBe(found.text);
    expect(new Webhook(key.webhookSecret).verify(body, headers as Record<string, string>)).toEqual(found.body);
    expect(() =>
      new Webhook(`whsec_${Buffer.alloc(32).toString('base64')}`).verify(body, headers as Record<string, string>),
    ).toThrow();
    const delivery = await deliveryOf(id, ({ status }) => status === 'delivered');
    expect(headers['webhook-id']).toBe(delivery.id);
    expect(delivery).toMatchObject({ attemptCount: 1, nextAttemptAt: null });
  });

  it('retries after a failure, with the same id, and logs each attempt', async () => {
    let release = (): void => undefined;
    const isSeen = new Promise<void>((resolve) => (release = resolve));
    const { url, next, received } = await receiver((_, response, count) => {
      if (count === 1) response.writeHead(500).end();
      // The second attempt does not end before the row has been read with one attempt.
      else void isSeen.then(() => response.writeHead(200).end());
    });
    const id = await terminate(url);
    await next(1);
    const pending = await deliveryOf(id, ({ attemptCount }) => attemptCount === 1);
    expect(pending.status).toBe('pending');
    const { startedAt } = await api.dataSource.manager.findOneByOrFail(WebhookAttempt, { deliveryId: pending.id });
    // Five seconds, minus up to a tenth, after the end of the attempt; the following wait would be minutes.
    const wait = (pending.nextAttemptAt?.getTime() ?? 0) - startedAt.getTime();
    expect(wait).toBeGreaterThanOrEqual(4_500);
    expect(wait).toBeLessThan(20_000);
    release();
    await next(2);
    await deliveryOf(id, ({ status }) => status === 'delivered');
    expect(received[1].headers['webhook-id']).toBe(received[0].headers['webhook-id']);
    expect(received[1].body).toBe(received[0].body);
    const attempts = await api.dataSource.manager.find(WebhookAttempt, {
      where: { deliveryId: pending.id },
      order: { startedAt: 'ASC' },
    });
    expect(attempts.map(({ statusCode }) => statusCode)).toEqual([500, 200]);
  });

  itOnce('sends the same body on each attempt, though the record was changed meanwhile', async () => {
    const { url, next } = await receiver((_, response, count) => response.writeHead(count === 1 ? 500 : 204).end());
    const images = [1, 2, 3, 4].map((n) => `http://pictures.invalid/${n}.png`);
    const { id } = await makeFinetune(api, key, { title: 'Before', images_url: images, webhook: url });
    const { status } = await api.request('POST', `/v1/finetunes/${id}/cancel`, { key });
    expect(status).toBe(201);
    const first = await next(1);
    const delivery = await deliveryOf(id, ({ attemptCount }) => attemptCount === 1);
    const renamed = await api.request<FinetuneJson>('PATCH', `/v1/finetunes/${id}`, { key, body: { title: 'After' } });
    expect(renamed.body.title).toBe('After');
    await api.dataSource.manager.update(WebhookDelivery, { id: delivery.id }, { nextAttemptAt: () => 'now()' });
    const second = await next(2);
    expect(second.headers['webhook-id']).toBe(first.headers['webhook-id']);
    expect(second.body).toBe(first.body);
    expect(JSON.parse(second.body)).toMatchObject({ id, title: 'Before' });
  });

  itOnce('treats a redirect as a failure and does not follow it', async () => {
    const canary = await receiver();
    const { url, next } = await receiver((_, response) => response.writeHead(302, { location: canary.url }).end());
    const id = await terminate(url);
    await next(1);
    const delivery = await deliveryOf(id, ({ attemptCount }) => attemptCount > 0);
    expect(delivery.status).toBe('pending');
    expect(canary.received).toHaveLength(0);
  });

  itOnce('waits as long as Retry-After says', async () => {
    const { url } = await receiver((_, response) => response.writeHead(429, { 'retry-after': '3600' }).end());
    const delivery = await deliveryOf(await terminate(url), ({ attemptCount }) => attemptCount === 1);
    const wait = (delivery.nextAttemptAt?.getTime() ?? 0) - Date.now();
    expect(wait).toBeGreaterThan(3_500_000);
  });

  itOnce('succeeds at the status line even if the body never ends', async () => {
    const { url } = await receiver((_, response) => {
      response.writeHead(200);
      const pump = setInterval(() => response.write('x'.repeat(65_536)), 1);
      response.on('close', () => clearInterval(pump));
    });
    const delivery = await deliveryOf(await terminate(url), ({ attemptCount }) => attemptCount === 1);
    expect(delivery.status).toBe('delivered');
  });

  itOnce('gives up a receiver that informs without end', async () => {
    const { url } = await receiver((_, response) => flood(response, 'HTTP/1.1 103 Early Hints\r\n\r\n'));
    const { id } = await deliveryOf(await terminate(url), ({ attemptCount }) => attemptCount === 1);
    const attempt = await api.dataSource.manager.findOneByOrFail(WebhookAttempt, { deliveryId: id });
    expect(attempt.error).toBe('The server sent more than 16 informational answers.');
  });

  itOnce('gives up an answer that does not come within 15 seconds, and tries again later', async () => {
    const { url } = await receiver(() => undefined);
    const { id, status } = await deliveryOf(await terminate(url), ({ attemptCount }) => attemptCount === 1);
    expect(status).toBe('pending');
    const attempt = await api.dataSource.manager.findOneByOrFail(WebhookAttempt, { deliveryId: id });
    expect(attempt).toMatchObject({
      statusCode: null,
      error: 'The receiver did not answer within 15 seconds.',
    });
  });

  itOnce('lets each attempt wait four days for its receiver, and as long again if the service was off', async () => {
    const { url } = await receiver((_, response) => response.writeHead(500).end());
    const recordId = await terminate(url);
    const { id } = await deliveryOf(recordId, ({ attemptCount }) => attemptCount === 1);
    const { manager } = api.dataSource;
    /** The fate of one that has been due for so many days and was last put off until `lateHours` ago. */
    const due = async (days: number, lateHours = 0) => {
      const nextAttemptAt = new Date(Date.now() - lateHours * 3_600_000);
      const row = { status: 'pending', nextAttemptAt, dueSince: daysAgo(days), claimedUntil: null } as const;
      await manager.update(WebhookDelivery, { id }, row);
      const { status, attemptCount, dueSince } = await deliveryOf(
        recordId,
        (found) => found.nextAttemptAt?.getTime() !== nextAttemptAt.getTime() && found.claimedUntil === null,
      );
      return { status, attemptCount, isDueAnew: dueSince!.getTime() > daysAgo(days).getTime() + 1_000 };
    };
    const visit = (answer: ReceiverAnswer): void => {
      const gate = api.app.get(ReceiverGate);
      const entry = gate.enter({ host: new URL(url).host, ownerId: key.id, isRedelivery: true });
      if ('leave' in entry) entry.leave(answer);
    };
    for (let i = 0; i < failuresToOpen; i++) visit('failed');
    expect(await due(3)).toEqual({ status: 'pending', attemptCount: 1, isDueAnew: false });
    expect(await due(5)).toEqual({ status: 'failed', attemptCount: 1, isDueAnew: false });
    // The service was off when the attempt was due.
    expect(await due(5, 5 * 24)).toEqual({ status: 'pending', attemptCount: 1, isDueAnew: true });
    visit('answered');
    expect(await due(3)).toEqual({ status: 'pending', attemptCount: 2, isDueAnew: true });
  });

  itOnce('makes the attempt of a process that died after it had claimed it', async () => {
    const { url, next } = await receiver((_, response, count) =>
      response.writeHead(count === 1 ? 503 : 200, { 'retry-after': '600' }).end(),
    );
    const id = await terminate(url);
    await next(1);
    const { id: deliveryId } = await deliveryOf(id, ({ attemptCount }) => attemptCount === 1);
    const claimed = { nextAttemptAt: daysAgo(1), claimedUntil: new Date(Date.now() + 2_000) };
    await api.dataSource.manager.update(WebhookDelivery, { id: deliveryId }, claimed);
    await next(2);
    expect(Date.now()).toBeGreaterThan(claimed.claimedUntil.getTime() - 500);
    await deliveryOf(id, ({ status }) => status === 'delivered');
  });

  describeOnce('when the operator does not allow private addresses', () => {
    const strict = ofSuite(() => startTestApi({ WEBHOOK_ALLOW_PRIVATE: 'false' }));
    const owner = ofSuite(() => strict.createKey());
    let canary: Receiver;

    beforeAll(async () => {
      canary = await receiver();
    });

    const literals = [
      ...['127.0.0.1', '127.1', '2130706433', '0x7f000001', '0177.0.0.1', '0.0.0.0', '10.0.0.1', '192.168.0.1'],
      ...['169.254.169.254', '168.63.129.16', '[::1]', '[::]', '[::ffff:127.0.0.1]', '[::127.0.0.1]'],
      ...['[64:ff9b::7f00:1]', '[2002:7f00:1::]', '[2001:0:4136:e378:8000:63bf:3fff:fdd2]'],
    ];
    const names = ['localhost', 'LocalHost.', 'a.localhost', 'shop', 'nas.local', 'metadata.google.internal'];
    const urlTo = (host: string): string => `http://${host}:${new URL(canary.url).port}/`;

    it.each([...literals, ...names])('rejects %s when the Generation is made', async (host) => {
      const { status, body } = await strict.request('POST', '/v1/sd/text-to-image', {
        key: owner,
        body: { prompt: 'a star', webhook: urlTo(host) },
      });
      expect({ status, ...body }).toMatchObject({
        status: 422,
        code: 'WebhookAddressRefused',
        detail: expect.stringContaining('WEBHOOK_ALLOW_PRIVATE') as string,
        errors: [{ pointer: '/webhook' }],
      });
    });

    it('refuses private literals at delivery too', async () => {
      const sender = strict.app.get(WebhookSender);
      for (const host of literals)
        for (const scheme of ['http', 'https']) {
          const url = urlTo(host).replace('http', scheme);
          const message = { id: 'x', ownerId: owner.id, url, body: '{}', secrets: [owner.webhookSecret] };
          await expect(sender.send(message)).resolves.toMatchObject({
            statusCode: null,
            answer: 'not asked',
            error: expect.stringContaining('not allowed') as string,
          });
        }
      expect(canary.received).toHaveLength(0);
    });

    it('gives up at delivery to this machine, which was allowed once, and warns the operator', async () => {
      const config = strict.app.get<Config>(CONFIG);
      const warn = jest.spyOn(strict.app.get(JsonLogger), 'warnSparingly');
      Object.assign(config, { webhookAllowPrivate: true });
      const { body } = await strict.request<{ id: string }>('POST', '/v1/sd/text-to-image', {
        key: owner,
        body: { prompt: 'a star', webhook: urlTo('localhost') },
      });
      Object.assign(config, { webhookAllowPrivate: false });
      await strict.request('POST', `/v1/sd/text-to-image/${body.id}/cancel`, { key: owner });
      const delivery = await deliveryOf(body.id, ({ attemptCount }) => attemptCount > 0, strict);
      const attempt = await strict.dataSource.manager.findOneByOrFail(WebhookAttempt, { deliveryId: delivery.id });
      expect(attempt.error).toMatch(/not allowed/);
      // That name means this machine for ever, so there is nothing to wait for.
      expect([delivery.status, delivery.nextAttemptAt]).toEqual(['failed', null]);
      expect(canary.received).toHaveLength(0);
      expect(warn).toHaveBeenCalledWith(
        expect.stringContaining('WEBHOOK_ALLOW_PRIVATE'),
        expect.objectContaining({ host: new URL(urlTo('localhost')).host, reason: attempt.error }),
      );
    });
  });

  itOnce('does not open the circuit of a host whose name cannot be resolved', async () => {
    const sender = api.app.get(WebhookSender);
    const message = { id: 'x', ownerId: key.id, body: '{}', secrets: [key.webhookSecret] };
    await expect(sender.send({ ...message, url: 'http://nowhere.invalid/' })).resolves.toMatchObject({
      answer: 'not asked',
      error: expect.stringMatching(/could not be reached: (ENOTFOUND|EAI_AGAIN)/) as string,
    });
    await expect(sender.send({ ...message, url: 'http://127.0.0.1:1/' })).resolves.toMatchObject({ answer: 'failed' });
  });
});
