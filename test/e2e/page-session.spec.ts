import { newSignInCode, SignInCode } from '@app/domain';
import type { TestKey } from '../support/api';
import { describeInBrowser, hold, TestBrowser } from '../support/browser';
import type { TestService } from '../support/service';
import { startTestService } from '../support/service';

jest.setTimeout(600_000);

describeInBrowser('A session of the page', () => {
  let service: TestService;
  let browser: TestBrowser;
  let key: TestKey;

  beforeAll(async () => {
    service = await startTestService({ workers: 0 });
    browser = await TestBrowser.start(service.baseUrl);
  });
  beforeEach(async () => {
    key = await service.createKey();
  });
  afterEach(() => expect(browser.problems.splice(0)).toEqual([]));
  afterAll(async () => {
    await browser.close();
    await service.close();
  });

  it('ends when the key is revoked, and says why', async () => {
    const page = await browser.signedIn(key.token);
    await service.dataSource.query('UPDATE api_keys SET revoked_at = now() WHERE id = $1', [key.id]);
    await page.getByText('Your key no longer works').waitFor();
    await page.getByLabel('API key').fill(key.token);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('The service does not know this key').waitFor();
  });

  it('leaves nothing of one key to the next that signs in, whatever answer comes late', async () => {
    const other = await service.createKey();
    await service.request('POST', '/v1/finetunes', { key, body: { name: 'secret', title: 'A secret Fine-Tune' } });
    const page = await browser.signedIn(key.token);
    await page.getByLabel('Prompt', { exact: true }).fill('a secret star');
    await page.goto(`${service.baseUrl}/#/fine-tunes`);
    await page.getByRole('heading', { name: 'A secret Fine-Tune' }).waitFor();
    // What the first key asks for from now on is answered late, and with a refusal.
    const letRefusals = await hold(page, '**/v1/**', {
      token: key.token,
      answer: (route) => route.fulfill({ status: 401, contentType: 'application/problem+json', body: '{}' }),
    });
    const late = page.waitForResponse((response) => response.status() === 401);
    await page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('API key').fill(other.token);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('You have no Fine-Tunes yet.').waitFor();
    letRefusals();
    await (await late).finished();
    await page.goto(`${service.baseUrl}/#/`);
    expect(await page.getByLabel('Prompt', { exact: true }).inputValue()).toBe('');
    expect(await page.locator('body').innerText()).not.toContain('secret');
  });

  it('signs in with a code, once, and keeps the code nowhere', async () => {
    const { code, row } = newSignInCode(key.token);
    await service.dataSource.getRepository(SignInCode).insert(row);
    const page = await (await browser.context()).newPage();
    await page.goto(`${service.baseUrl}/#code=${code}`);
    await page.locator('.prompt-form').waitFor();
    expect(page.url()).not.toContain(code);
    await page.reload();
    await page.locator('.prompt-form').waitFor();
    const other = await (await browser.context()).newPage();
    await other.goto(`${service.baseUrl}/#code=${code}`);
    await other.getByText('was used before or has expired').waitFor();
    expect(service.api.output()).not.toContain(code);
  });
});
