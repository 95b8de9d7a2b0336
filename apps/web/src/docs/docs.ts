import '../styles/tokens.css';
import '../styles/base.css';
import '../styles/shell.css';
import './layout.css';
import './docs.css';
import './samples.css';
import '../styles/touch.css';
import { chooseTheme, chosenTheme } from '../ui/theme';
import { copyFrom } from './copy';
import { searchIn } from './search';

const form = document.querySelector<HTMLFormElement>('form.search')!;
const field = form.querySelector('input')!;
const found = document.querySelector<HTMLElement>('.found')!;
const article = document.querySelector<HTMLElement>('article')!;
const contents = document.querySelector<HTMLElement>('.contents')!;
const theme = document.querySelector<HTMLSelectElement>('.theme')!;
const base = document.body.dataset.base!;

/** Shows the query of the address, so that Back finds it again, unless the address names a part of the page. */
function readAddress(): void {
  field.value = location.hash === '' ? (new URLSearchParams(location.search).get('q') ?? '') : '';
  void show();
}

function search(query: string): void {
  history.replaceState(null, '', query.trim() === '' ? location.pathname : `?${new URLSearchParams({ q: query })}`);
  field.value = query;
  void show();
}

/** Shows results in place of the page, or the page when nothing is searched for. */
async function show(): Promise<void> {
  const query = field.value.trim();
  const results = query === '' ? [] : await searchIn(query);
  // A later search has taken its place.
  if (field.value.trim() !== query) return;
  article.hidden = query !== '';
  found.replaceChildren(...(query === '' ? [] : [heading(results.length, query), ...results.map(line)]));
}

function heading(count: number, query: string): HTMLElement {
  const told = count === 0 ? `Nothing is found for “${query}”.` : `${count} found for “${query}”`;
  return element('h1', told);
}

function line({ page, heading: title, path, text }: Awaited<ReturnType<typeof searchIn>>[number]): HTMLElement {
  const link = element('a', title === page ? page : `${page}: ${title}`);
  link.setAttribute('href', `${base}${path}`);
  const entry = element('div');
  entry.className = 'result';
  entry.append(link, element('small', kindOf(path)), element('p', text));
  return entry;
}

const kindOf = (path: string): string =>
  path.startsWith('reference') ? ' API reference' : path.startsWith('files/') ? ' file' : '';

function element(name: string, text = ''): HTMLElement {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}

field.addEventListener('input', () => search(field.value));
addEventListener('popstate', readAddress);
readAddress();
form.addEventListener('submit', (event) => {
  event.preventDefault();
  found.querySelector('a')?.click();
});
document.addEventListener('keydown', (event) => {
  if (event.key === '/' && document.activeElement !== field) {
    event.preventDefault();
    field.focus();
  } else if (event.key === 'Escape' && field.value !== '') search('');
});

theme.value = chosenTheme();
theme.addEventListener('change', () => chooseTheme(theme.value));

async function copy(sample: HTMLElement, button: HTMLElement): Promise<void> {
  button.textContent = (await copyFrom(sample.querySelector('pre')!)) ? 'Copied' : 'Not copied';
  button.addEventListener('blur', () => (button.textContent = 'Copy'), { once: true });
}

for (const sample of document.querySelectorAll<HTMLElement>('.sample')) {
  const button = element('button', 'Copy');
  button.className = 'button copy';
  button.addEventListener('click', () => void copy(sample, button));
  sample.querySelector('.bar')!.append(button);
}

/** The list of pages may be longer than the window; on a narrow screen it opens above the page. */
function scrollToCurrent(): void {
  const current = contents.querySelector<HTMLElement>('[aria-current]');
  if (current) contents.scrollTop = current.offsetTop - contents.clientHeight / 2;
}
scrollToCurrent();
contents.addEventListener('toggle', scrollToCurrent);
// A link to a part of this page loads nothing: the outline would stay open over it, or results in its place.
const outline = document.querySelector<HTMLElement>('.outline[popover]');
outline?.addEventListener('click', ({ target }) => {
  if (!(target instanceof HTMLAnchorElement)) return;
  if (outline.matches(':popover-open')) outline.hidePopover();
  field.value = '';
  void show();
});
