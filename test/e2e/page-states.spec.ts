import { newSignInCode, SignInCode } from '@app/domain';
import type { Page } from 'playwright-core';
import { browserOfSuite, describeInBrowser, dropFile, faults, faultsAt, hold } from '../support/browser';
import { guides, referencePages } from '../support/docs-pages';
import { startTestService } from '../support/service';
import { ofSuite, ofTest } from '../support/of-suite';

/** Pages of the documentation that are looked at in both colours and both widths. */
const looked: readonly string[] = ['/docs/contract', '/docs/webhooks', '/docs/reference/text-to-image'];
const others = ['/docs', ...[...guides, ...referencePages].map((name) => `/docs/${name}`)].filter(
  (path) => !looked.includes(path),
);

jest.setTimeout(600_000);

describeInBrowser('The page', () => {
  // Content of the pictures does not matter.
  const service = ofSuite(() => startTestService({ env: { MODELS_DIR: process.env.TEST_MODELS_DIR! } }));
  const browser = browserOfSuite(service);
  const key = ofTest(() => service.createKey());
  let page: Page;

  describe.each(['dark', 'light'] as const)('wide and at 360 pixels, in %s colours', (colorScheme) => {
    const look = { onlyColours: colorScheme === 'light' };
    beforeEach(async () => {
      page = await (await browser.context({ colorScheme })).newPage();
    });

    const signIn = async (token = key.token): Promise<void> => {
      await page.goto(service.baseUrl);
      await page.getByLabel('API key').fill(token);
      await page.getByRole('button', { name: 'Sign in' }).click();
    };
    const expectSound = async (state: string) => expect([state, await faults(page, look)]).toEqual([state, []]);
    const goTo = (name: string) => page.getByRole('link', { name, exact: true }).click();

    it('has no fault where a key is wrong', async () => {
      await signIn('dr_wrong');
      await page.getByText('The service does not know this key').waitFor();
      await expectSound('wrong key');
    });

    it('has no fault while it loads, and where there is nothing', async () => {
      const letAll = await hold(page, '**/v1/**');
      await page.goto(service.baseUrl);
      await page.getByLabel('API key').fill(key.token);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByText('Signing in …').waitFor();
      await expectSound('signing in');
      letAll();
      await page.getByText('Nothing here yet.').waitFor();
      await expectSound('empty gallery');
      const letPictures = await hold(page, '**/v1/sd/**');
      await page.getByLabel('Show').selectOption('failed');
      await page.getByText('Loading pictures …').waitFor();
      await expectSound('gallery that loads');
      letPictures();
      await page.getByText('No picture has this status.').waitFor();
      await expectSound('empty filter');
      const letCollections = await hold(page, '**/v1/prompts/collections*');
      await goTo('Collections');
      await page.getByText('Loading …').waitFor();
      await expectSound('collections that load');
      letCollections();
      await page.getByRole('heading', { name: 'Public' }).waitFor();
      await expectSound('collections');
      await goTo('Fine-Tunes');
      await page.locator('.empty').waitFor();
      await expectSound('no finetunes');
    });

    it('has no fault where the service is away, and goes on when it is back', async () => {
      await signIn();
      await page.getByText('Nothing here yet.').waitFor();
      await page.context().setOffline(true);
      await page.getByText('The service does not answer. Trying again').waitFor();
      await page.getByLabel('Show').selectOption('failed');
      await page.getByText('The pictures could not be loaded.').waitFor();
      await expectSound('gallery that failed');
      for (const name of ['Collections', 'Fine-Tunes']) {
        await goTo(name);
        await page.getByText('This could not be read: The service does not answer.').waitFor();
        await expectSound(`${name} that failed`);
      }
      await page.context().setOffline(false);
      await page.getByText('This could not be read').waitFor({ state: 'detached' });
      await goTo('Collections');
      await page.getByRole('link', { name: 'Patterns' }).waitFor();
      await goTo('Draw');
      await page.getByText('No picture has this status.').waitFor();
    });

    it('has no fault while weights are uploaded, and where they are refused', async () => {
      await signIn();
      await goTo('Fine-Tunes');
      await page.getByLabel('Name', { exact: true }).fill('robot');
      await page.getByRole('button', { name: 'Create' }).click();
      await page.getByRole('heading', { name: 'robot' }).waitFor();
      const letWeights = await hold(page, '**/weights');
      await dropFile(page, '.card .drop', 'x.safetensors', '', Buffer.from('this is no safetensors file'));
      await page.locator('.card .drop progress').waitFor();
      await expectSound('upload');
      letWeights();
      const problem = page.locator('.card .drop .problem').getByText(/safetensors/);
      await problem.waitFor();
      await expectSound('refused weights');
    });

    it('has documentation without a fault', async () => {
      for (const path of looked) {
        await page.goto(`${service.baseUrl}${path}`);
        await expectSound(path);
      }
      // They are all made alike: half of them are looked at in each of the colours, and in one width each.
      const isTurn = (place: number): boolean => place % 2 === ['dark', 'light'].indexOf(colorScheme);
      for (const [turn, path] of others.filter((_, place) => isTurn(place)).entries()) {
        await page.goto(`${service.baseUrl}${path}`);
        expect([path, await faultsAt(page, turn % 2 === 0 ? 360 : 1280)]).toEqual([path, []]);
      }
    });
  });

  describe('with a session', () => {
    it('ends it when the key is revoked, and says why', async () => {
      page = await browser.signedIn(key.token);
      await service.dataSource.query('UPDATE api_keys SET revoked_at = now() WHERE id = $1', [key.id]);
      await page.getByText('Your key no longer works').waitFor();
      await page.getByLabel('API key').fill(key.token);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByText('The service does not know this key').waitFor();
    });

    it('leaves nothing of one key to the next that signs in, whatever answer comes late', async () => {
      const other = await service.createKey();
      await service.request('POST', '/v1/finetunes', { key, body: { name: 'secret', title: 'A secret Fine-Tune' } });
      page = await browser.signedIn(key.token);
      await page.getByLabel('Prompt', { exact: true }).fill('a secret star');
      await page.goto(`${service.baseUrl}/#/fine-tunes`);
      await page.getByRole('heading', { name: 'A secret Fine-Tune' }).waitFor();
      // Requests of the first key are answered late from now on, and with a refusal.
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
      page = await (await browser.context()).newPage();
      await page.goto(`${service.baseUrl}/#code=${code}`);
      await page.locator('.prompt-form').waitFor();
      expect(page.url()).not.toContain(code);
      await page.reload();
      await page.locator('.prompt-form').waitFor();
      const other = await (await browser.context()).newPage();
      await other.goto(`${service.baseUrl}/#code=${code}`);
      await other.getByText('was used before or has expired').waitFor();
      expect(service.api.output).not.toContain(code);
    });
  });
});
