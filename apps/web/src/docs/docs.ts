import '../styles/tokens.css';
import '../styles/base.css';
import '../styles/shell.css';
import './docs.css';
import { searchIn } from './search';

const form = document.querySelector<HTMLFormElement>('form.search')!;
const field = form.querySelector('input')!;
const found = document.querySelector<HTMLElement>('.found')!;
const article = document.querySelector<HTMLElement>('article')!;
const contents = document.querySelector<HTMLElement>('.contents')!;
const current = contents.querySelector<HTMLElement>('[aria-current]');
const base = document.body.dataset.base!;

/** Shows what is found in place of the page, and the page again when nothing is searched for. */
async function show(): Promise<void> {
  const query = field.value.trim();
  const results = query === '' ? [] : await searchIn(query);
  // A later answer has taken its place.
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
  link.addEventListener('click', () => {
    field.value = '';
    void show();
  });
  const entry = element('div');
  entry.className = 'result';
  entry.append(link, element('p', text));
  return entry;
}

function element(name: string, text = ''): HTMLElement {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}

field.addEventListener('input', () => void show());
form.addEventListener('submit', (event) => {
  event.preventDefault();
  found.querySelector('a')?.click();
});
document.addEventListener('keydown', (event) => {
  if (event.key === '/' && document.activeElement !== field) {
    event.preventDefault();
    field.focus();
  } else if (event.key === 'Escape' && field.value !== '') {
    field.value = '';
    void show();
  }
});

// The list of pages may be longer than the window.
if (current) contents.scrollTop = current.offsetTop - contents.clientHeight / 2;
