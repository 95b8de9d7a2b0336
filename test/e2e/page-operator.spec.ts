import type { Page } from 'playwright-core';
import { insertKey, type TestKey } from '../support/api';
import { browserOfSuite, describeInBrowser, faults, violations } from '../support/browser';
import { startReceiver } from '../support/receiver';
import { trainableModels } from '../support/quick-model';
import { startTestService } from '../support/service';
import { until } from '../support/until';
import { ofSuite } from '../support/of-suite';

const parts = ['Live', 'Usage', 'Deliveries', 'Keys', 'Models', 'Storage', 'Failures'];

jest.setTimeout(600_000);

describeInBrowser('The page of an operator', () => {
  // Content of the pictures does not matter.
  const service = ofSuite(() => startTestService({ env: { MODELS_DIR: trainableModels() } }));
  const browser = browserOfSuite(service);
  let answer = 500;
  const receiver = ofSuite(() => startReceiver((_, response) => response.writeHead(answer).end()));
  let [admin, shop]: TestKey[] = [];

  beforeAll(async () => {
    admin = await insertKey(service.dataSource, { name: 'operator', scopes: ['admin'] });
    shop = await insertKey(service.dataSource, { name: 'web shop', maxConcurrent: 1 });
  });

  const draw = async (body: object = {}, key = shop): Promise<string> => {
    const whole = { prompt: 'a red star', model: 'shapes', steps: 2, ...body };
    return (await service.request<{ id: string }>('POST', '/v1/sd/text-to-image', { key, body: whole })).body.id;
  };
  const cancel = (id: string) => service.request('POST', `/v1/sd/text-to-image/${id}/cancel`, { key: shop });
  const drawn = async (body: object = {}, key = shop): Promise<string> => {
    const id = await draw(body, key);
    const find = () => service.request<{ status: string }>('GET', `/v1/sd/text-to-image/${id}`, { key });
    await until(async () => (await find()).body.status === 'succeeded', 'it is drawn');
    return id;
  };
  const open = async (page: Page, part: string): Promise<void> => {
    await page.getByRole('link', { name: 'Operate' }).click();
    await page.getByRole('navigation', { name: 'Parts' }).getByRole('link', { name: part, exact: true }).click();
  };
  const figure = (page: Page, name: string) =>
    page
      .locator('.figures div')
      .filter({ has: page.locator('dt', { hasText: new RegExp(`^${name}$`) }) })
      .locator('dd');

  it('is not there for other keys, and says so to who has its address', async () => {
    const page = await browser.signedIn(shop.token);
    const asked: string[] = [];
    page.on('request', (request) => asked.push(new URL(request.url()).pathname));
    await page.evaluate(`location.hash = '#/operate/keys'`);
    await page.getByText('it needs a key with the scope “admin”').waitFor();
    expect(await page.getByRole('link', { name: 'Operate' }).count()).toBe(0);
    expect(await page.getByRole('navigation', { name: 'Parts' }).count()).toBe(0);
    expect(asked.filter((path) => /queue|workers|keys\b(?!\/current)/.test(path))).toEqual([]);
    expect(await violations(page)).toEqual([]);
    await page.getByRole('link', { name: 'Back to drawing' }).click();
    await page.locator('.prompt-form').waitFor();
  });

  it('shows queue, worker, batch and memory while pictures are drawn, and that they end', async () => {
    const page = await browser.signedIn(admin.token);
    await open(page, 'Live');
    await page.getByText('Nothing is drawn at the moment.').waitFor();
    expect(await figure(page, 'Workers').textContent()).toBe('1');
    const id = await draw({ num_generations: 8, steps: 50 });
    const row = page.getByRole('region', { name: 'Drawing' }).getByRole('row', { name: id });
    await row.getByText('8 pictures, 50 steps').waitFor();
    expect(await row.textContent()).toContain('web shop');
    const card = page.locator('.card').filter({ hasText: 'Worker' });
    await card.getByText('Drawing 1 task').waitFor();
    await card.getByText(/^\d+ pictures?$/).waitFor();
    await card.getByText(/shapes@[0-9a-f]{12}/).waitFor();
    expect(await card.getByText(/^\d.* of \d/).textContent()).toMatch(/^[\d.]+ MB of [\d.]+ GB$/);
    await cancel(id);
    await page.getByText('Nothing is drawn at the moment.').waitFor();
    await card.getByText('Idle').waitFor();
  });

  it('asks for nothing while nobody sees it', async () => {
    const context = await browser.context();
    await context.clock.install();
    const page = await browser.signedIn(admin.token, context);
    await open(page, 'Live');
    await figure(page, 'Waiting').waitFor();
    const show = (isHidden: boolean) =>
      page.evaluate(`
        Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'));
      `);
    await show(true);
    await page.waitForLoadState('networkidle');
    let count = 0;
    page.on('request', (request) => (count += request.url().endsWith('/v1/queue') ? 1 : 0));
    await context.clock.runFor(30_000);
    expect(count).toBe(0);
    await show(false);
    await until(async () => count === 1, 'it asks at once when it is seen');
  });

  it('plots pictures and failures by key, model and time, with a script that only this part loads', async () => {
    await drawn({ num_generations: 2 });
    const page = await browser.signedIn(admin.token);
    const scripts: string[] = [];
    page.on('request', (request) => scripts.push(new URL(request.url()).pathname));
    await open(page, 'Usage');
    await page.locator('.usage-plot canvas').waitFor();
    expect(scripts.filter((path) => /uPlot.*\.js$/i.test(path))).toHaveLength(1);
    const sums = page.getByRole('group', { name: 'Pictures' });
    await sums.getByRole('cell', { name: 'All' }).waitFor();
    await page.getByRole('radiogroup', { name: 'By' }).getByLabel('Key').check({ force: true });
    await sums.getByRole('cell', { name: 'web shop' }).waitFor();
    await page.getByRole('radiogroup', { name: 'By' }).getByLabel('Model').check({ force: true });
    await page.getByRole('radiogroup', { name: 'When' }).getByLabel('Last 30 days').check({ force: true });
    await sums.getByRole('cell', { name: 'shapes' }).waitFor();
    expect(await violations(page)).toEqual([]);
  });

  it('shows deliveries by status, and sends one again', async () => {
    const id = await draw({ webhook: `${receiver.url}/a-secret-path` });
    await cancel(id);
    const page = await browser.signedIn(admin.token);
    await open(page, 'Deliveries');
    const row = page.getByRole('row', { name: new URL(receiver.url).origin });
    await row.getByText(/^500/).waitFor();
    expect(await page.locator('main').textContent()).not.toContain('a-secret-path');
    await page.getByLabel('Given up').check({ force: true });
    await page.getByText('There are no deliveries.').waitFor();
    await page.getByLabel('Pending').check({ force: true });
    answer = 204;
    await row.getByRole('button', { name: 'Send again' }).click();
    await page.getByLabel('Delivered', { exact: true }).check({ force: true });
    await row.getByText('Delivered').waitFor();
    expect(receiver.received.length).toBeGreaterThanOrEqual(2);
  });

  it('makes, limits, rotates and revokes keys, and plots what they have drawn', async () => {
    const kiosk = await insertKey(service.dataSource, { name: 'kiosk' });
    await drawn({}, kiosk);
    await service.dataSource.query(
      `INSERT INTO daily_usage (owner_id, day, model, finetune_id, images, steps, compute_seconds)
       VALUES ($1, (now() AT TIME ZONE 'UTC')::date - 3, 'shapes', '', 40, 1200, 80)`,
      [kiosk.id],
    );
    const page = await browser.signedIn(admin.token);
    await open(page, 'Keys');
    const card = (name: string) =>
      page.locator('.key-cards > li').filter({ has: page.getByRole('heading', { name, exact: true }) });
    await card('kiosk').getByText('41 pictures').waitFor();
    expect(await card('kiosk').locator('.usage rect').count()).toBe(30);
    expect(await card('kiosk').locator('.usage rect:not(.is-none)').count()).toBe(2);
    await card('kiosk').getByText('As a table').click();
    expect(await card('kiosk').locator('tbody tr').count()).toBe(2);
    expect(await card('operator (yours)').getByRole('button', { name: 'Revoke' }).count()).toBe(0);

    await page.getByLabel('Name', { exact: true }).fill('camera');
    await page.getByLabel('Account', { exact: true }).fill('studio');
    await page.getByLabel('Scope').selectOption('read');
    await page.getByRole('button', { name: 'Make a key' }).click();
    const token = (await page.locator('.secret code').first().textContent()) ?? '';
    expect(token).toMatch(/^dr_/);
    const isAccepted = async (tried: string) =>
      (await service.request('GET', '/v1/models', { key: { token: tried } })).status === 200;
    expect(await isAccepted(token)).toBe(true);
    await page.getByRole('button', { name: 'I have it' }).click();
    expect(await page.content()).not.toContain(token);
    await card('camera').getByText('account studio').waitFor();

    await card('camera').getByText('Limits: those of the service').click();
    await card('camera').getByLabel('Waiting tasks').fill('7');
    await card('camera').getByRole('button', { name: 'Save' }).click();
    await page.getByText('The limits were changed.').waitFor();
    const limits = () =>
      service.dataSource.query<object[]>(
        `SELECT max_queued, rate_limit_per_minute, retention_days FROM api_keys WHERE name = 'camera'`,
      );
    expect(await limits()).toEqual([{ max_queued: 7, rate_limit_per_minute: null, retention_days: null }]);

    await card('camera').getByRole('button', { name: 'New token' }).click();
    await card('camera').getByRole('button', { name: 'New token' }).click();
    const newer = (await page.locator('.secret code').first().textContent()) ?? '';
    expect([newer === token, await isAccepted(newer)]).toEqual([false, true]);
    await page.getByRole('button', { name: 'I have it' }).click();
    await card('camera').getByRole('button', { name: 'New webhook secret for camera' }).click();
    await card('camera').getByText('Webhooks are signed with both for another day.').waitFor();
    await card('camera').getByRole('button', { name: 'New webhook secret', exact: true }).click();
    const secret = (await page.locator('.secret code').first().textContent()) ?? '';
    expect(
      await service.dataSource.query(
        `SELECT webhook_secret AS secret, previous_webhook_secret <> webhook_secret AS "isNew",
           previous_webhook_secret_expires_at > now() + interval '23 hours' AS "hasPrevious"
         FROM api_keys WHERE name = 'camera'`,
      ),
    ).toEqual([{ secret, isNew: true, hasPrevious: true }]);
    expect(await violations(page)).toEqual([]);
    await page.getByRole('button', { name: 'I have it' }).click();
    expect(await page.content()).not.toContain(secret);
    await card('camera').getByRole('button', { name: 'Revoke camera' }).click();
    await card('camera').getByRole('button', { name: 'Revoke', exact: true }).click();
    await card('camera').getByText('Revoked', { exact: true }).waitFor();
    await until(async () => !(await isAccepted(newer)), 'it is accepted no longer');
  });

  it('shows what is installed, what is stored, and what failed with its reason', async () => {
    await drawn();
    const id = await drawn({ prompt: 'nobody else reads this' });
    await service.dataSource.query(
      `UPDATE tasks SET status = 'failed', error = 'The model has no picture for it.' WHERE id = $1`,
      [id],
    );
    const page = await browser.signedIn(admin.token);
    await open(page, 'Models');
    const model = page.locator('.card').filter({ has: page.getByRole('heading', { name: 'shapes', exact: true }) });
    await model.getByText('sd1.5, sd2.1').waitFor();
    await model.getByText('Ready').waitFor();
    await open(page, 'Storage');
    await page.getByRole('row', { name: 'web shop' }).waitFor();
    expect((await figure(page, 'Pictures').textContent())?.trim()).toMatch(/^[\d.]+ kB$/);
    await open(page, 'Failures');
    const row = page.getByRole('row', { name: id });
    await row.getByText('The model has no picture for it.').waitFor();
    expect(await row.textContent()).toContain('web shop');
    expect(await page.locator('main').textContent()).not.toContain('nobody else reads this');
  });

  it.each(['dark', 'light'] as const)(
    'is without a finding of axe in every part (%s), wide and at 360 pixels',
    async (colorScheme) => {
      const context = await browser.context({ colorScheme, viewport: { width: 1280, height: 800 } });
      const page = await browser.signedIn(admin.token, context);
      // One is drawn and one waits while the first part is looked at.
      const ids = [await draw({ num_generations: 8, steps: 50 }), await draw()];
      for (const part of parts) {
        await open(page, part);
        await page.locator('.operator section').first().waitFor();
        await page.getByText('Loading …').first().waitFor({ state: 'detached' });
        if (part === 'Live')
          await until(async () => (await page.locator('.table-box').count()) === 2, 'both are there');
        if (part === 'Keys')
          await page.evaluate(`document.querySelectorAll('details').forEach((each) => (each.open = true))`);
        expect([part, await faults(page, { onlyColours: colorScheme === 'light' })]).toEqual([part, []]);
        for (const id of ids.splice(0).reverse()) await cancel(id);
      }
    },
  );
});
