import axe from 'axe-core';
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
  type Route,
} from 'playwright-core';
import { isExecutable, programFile } from './program-file';

const names = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

/** The Chromium of this machine: `CHROMIUM`, or the first in `PATH`. */
export const chromiumFile: string | undefined =
  process.env.CHROMIUM && isExecutable(process.env.CHROMIUM) ? process.env.CHROMIUM : programFile(...names);

/**
 * Work that a browser starts beside each page and nobody sees without a screen: half of a context's cost. Only the last
 * such list counts, so it repeats those of Playwright's list that matter here.
 */
const disabledFeatures = [
  ...['PreloadTopChromeWebUI', 'WebUIOmniboxPopup', 'WebUIOmniboxAimPopup', 'SpareRendererForSitePerProcess'],
  ...[
    'DestroyProfileOnBrowserClose',
    'HttpsUpgrades',
    'HttpsFirstBalancedModeAutoEnable',
    'LensOverlay',
    'MediaRouter',
  ],
  ...['PaintHolding', 'ThirdPartyStoragePartitioning', 'OptimizationHints', 'NetworkTimeServiceQuerying', 'AimEnabled'],
  ...['AvoidUnnecessaryBeforeUnloadCheckSync', 'AvoidCorsURLLoaderRestartOnRedirect', 'PreconnectToSearch'],
];

/** `describe`, whose tests are skipped and counted where no browser is found. */
export const describeInBrowser = chromiumFile === undefined ? describe.skip : describe;

/** A browser, and what its pages did that the page never may. */
export class TestBrowser {
  /** Errors in the console, refusals of the content policy, and requests to other hosts. */
  readonly problems: string[] = [];

  private constructor(
    private readonly browser: Browser,
    private readonly baseUrl: string,
  ) {}

  static async start(baseUrl: string): Promise<TestBrowser> {
    const args = ['--no-sandbox', '--disable-dev-shm-usage', `--disable-features=${disabledFeatures.join()}`];
    return new TestBrowser(await chromium.launch({ executablePath: chromiumFile, args }), baseUrl);
  }

  async context(options: BrowserContextOptions = {}): Promise<BrowserContext> {
    const context = await this.browser.newContext({ reducedMotion: 'reduce', ...options });
    context.setDefaultTimeout(120_000);
    context.on('page', (page) => this.watch(page));
    return context;
  }

  /** Signed in by the form. */
  async signedIn(token: string, context?: BrowserContext): Promise<Page> {
    const page = await (context ?? (await this.context())).newPage();
    await page.goto(this.baseUrl);
    await page.getByLabel('API key').fill(token);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.locator('.prompt-form').waitFor();
    return page;
  }

  /**
   * Closes all pages: an open one goes on following events and rendering during later tests.
   * @returns what they did that the page never may
   */
  async closePages(): Promise<string[]> {
    await Promise.all(this.browser.contexts().map((context) => context.close()));
    return this.problems.splice(0);
  }

  close(): Promise<void> {
    return this.browser.close();
  }

  private watch(page: Page): void {
    page.on('pageerror', (error) => this.problems.push(String(error)));
    page.on('console', (message) => {
      // The browser reports every status above 399 and every unanswered request as an error of the page.
      if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
        this.problems.push(message.text());
    });
    page.on('request', (request) => {
      const url = request.url();
      if (!url.startsWith(this.baseUrl) && !/^(?:data|blob):/.test(url)) this.problems.push(`It asked for ${url}`);
    });
  }
}

/** One browser for all tests of the suite. A test fails whose pages did what the page never may. */
export function browserOfSuite(service: { baseUrl: string }): TestBrowser {
  const browser = Object.create(TestBrowser.prototype) as TestBrowser;
  beforeAll(async () => void Object.assign(browser, await TestBrowser.start(service.baseUrl)));
  afterEach(async () => expect(await browser.closePages()).toEqual([]));
  afterAll(() => browser.close());
  return browser;
}

/** Rules that one colour scheme may keep and the other break. */
const rulesOfColours = ['color-contrast', 'link-in-text-block'];

interface Look {
  /** For elements that another colour scheme checks whole. */
  onlyColours?: boolean;
}

/** Faults that axe finds with a page as it is now: rule and place. */
export async function violations(page: Page, { onlyColours = false }: Look = {}): Promise<string[]> {
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(axe.source);
  // What is right need not be listed.
  const options: axe.RunOptions = { resultTypes: ['violations'], ...(onlyColours && { runOnly: rulesOfColours }) };
  return page.evaluate(async (how) => {
    const { axe: loaded } = globalThis as unknown as { axe: typeof axe };
    const { violations: found } = await loaded.run(how);
    return found.flatMap(({ id, nodes }) =>
      nodes.map((node) => `${id}: ${node.target.join(' ')} (${node.failureSummary})`),
    );
  }, options);
}

/** Elements that make a page wider than its window. Page scripts are texts: this compiles without the DOM's types. */
export function tooWide(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(`(() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    if (scrollWidth <= clientWidth) return [];
    const isWide = (element) => element.getBoundingClientRect().right > clientWidth + 1;
    const wide = [...document.querySelectorAll('body *')].filter(isWide);
    return wide.map((element) => element.tagName + ' ' + element.className + ' of ' + location.hash);
  })()`);
}

/** Faults of a page as it is now, on a narrow and on a wide screen: what makes it too wide, and what axe finds. */
export async function faults(page: Page, look?: Look): Promise<string[]> {
  return [...(await faultsAt(page, 360, look)), ...(await faultsAt(page, 1280, look))];
}

/** The same on a screen of one width. */
export async function faultsAt(page: Page, width: number, look?: Look): Promise<string[]> {
  await page.setViewportSize({ width, height: 800 });
  return [...(await tooWide(page)), ...(await violations(page, look))];
}

/**
 * Holds answers back until released.
 * @param options.token of the requests whose answers are held; by default all are
 * @param options.answer the final answer; by default the service's
 */
export async function hold(
  page: Page,
  path: string,
  { token, answer = (route) => route.continue() }: { token?: string; answer?: (route: Route) => Promise<void> } = {},
): Promise<() => void> {
  let open = (): void => undefined;
  const gate = new Promise<void>((resolve) => (open = resolve));
  await page.route(path, async (route) => {
    if (token && (await route.request().headerValue('authorization')) !== `Bearer ${token}`) return route.continue();
    await gate;
    return answer(route);
  });
  return open;
}

/** Drops a file on an element, as from another window. */
export async function dropFile(page: Page, selector: string, name: string, type: string, bytes: Buffer): Promise<void> {
  const dataTransfer = await page.evaluateHandle(`(() => {
    const bytes = Uint8Array.from(atob('${bytes.toString('base64')}'), (character) => character.charCodeAt(0));
    const transfer = new DataTransfer();
    transfer.items.add(new File([bytes], ${JSON.stringify(name)}, { type: ${JSON.stringify(type)} }));
    return transfer;
  })()`);
  for (const event of ['dragover', 'drop']) await page.dispatchEvent(selector, event, { dataTransfer });
}
