import { readFileSync, statSync } from 'node:fs';
import { join, posix } from 'node:path';
import { escapeHtml, headingsOf, linksOf, render, sectionsOf, tokensOf } from './docs-markdown.mjs';
import { referencePages } from './reference.mjs';

const { basename, dirname } = posix;
const root = join(import.meta.dirname, '..', '..');
const read = (file) => readFileSync(join(root, file), 'utf8');
const searchIndex = 'virtual:search-index';

/**
 * A page.
 * @param path its address below the service's
 * @param folder to which its links are relative
 */
const page = (title, path, folder, text) => ({ title, path, folder, tokens: tokensOf(text) });

/** `docs/train.md` is served at `docs/train`, `packages/client/README.md` at `docs/client`. */
const pathOf = (file) => `docs/${basename(file) === 'README.md' ? basename(dirname(file)) : basename(file, '.md')}`;

/** The groups of pages as `docs/README.md` lists them, and the reference. Links lead to the page of a file. */
function allGroups() {
  const guides = read('docs/README.md')
    .split(/^## /m)
    .slice(1)
    .map((part) => ({
      heading: part.split('\n')[0],
      pages: [...part.matchAll(/^- \[([^\]]+)\]\(([\w./-]+\.md)\)/gm)].map(([, title, link]) => {
        const file = posix.join('docs', link);
        return { file, ...page(title, pathOf(file), dirname(file), read(file)) };
      }),
    }));
  const reference = referencePages.map(({ title, name, text }) => ({
    file: `docs/${name}.md`,
    ...page(title, `docs/${name}`, 'docs', text),
  }));
  return [...guides, { heading: 'Reference', pages: reference }];
}

/**
 * Linked files are served from here for those who have only an image of the service. Folders are not listed: an
 * operator's own files may lie in them.
 */
const isServed = (file) =>
  /^(?:docker\/.+|CHANGELOG\.md|SECURITY\.md)$/.test(file) && !statSync(join(root, file)).isDirectory();

function filePage(file) {
  const text = read(file);
  const language = /\.(\w+)$/.exec(file)?.[1] ?? '';
  const whole = language === 'md' ? text : `# ${file}\n\n\`\`\`\`${language}\n${text}\n\`\`\`\``;
  return { file, ...page(file, `docs/files/${file}`, dirname(file), whole) };
}

/** The file of the repository that a link leads to, and the part of it; no file for other links. */
function targetOf(folder, href) {
  const [, path, fragment] = /^(?!\w+:|#|\/)([^#]+)(#.*)?$/.exec(href) ?? [];
  return { file: path && posix.join(folder, path).replace(/\/$/, ''), fragment: fragment ?? '' };
}

/** Adds the pages of linked files, and of the files linked from those, and so on. */
function withFiles(pages) {
  const all = [...pages];
  const known = new Set(all.map(({ file }) => file));
  for (const { folder, tokens } of all)
    for (const href of linksOf(tokens)) {
      const { file } = targetOf(folder, href);
      if (!file || known.has(file) || !isServed(file)) continue;
      known.add(file);
      all.push(filePage(file));
    }
  return all;
}

const list = (links) => `<ul>${links.join('')}</ul>`;
const navigation = (groups, top, current) =>
  groups
    .map(({ heading, pages }) => {
      const links = pages.map(
        ({ title, path }) =>
          `<li><a href="${top}${path}"${path === current ? ' aria-current="page"' : ''}>${escapeHtml(title)}</a></li>`,
      );
      return `<h2>${escapeHtml(heading)}</h2>${list(links)}`;
    })
    .join('');

/** None for a page with a single heading. */
function outlineOf(tokens) {
  const headings = headingsOf(tokens).filter(({ level }) => level === 2 || level === 3);
  if (headings.length < 2) return '';
  const links = headings.map(
    ({ level, id, words }) => `<li class="level-${level}"><a href="#${id}">${escapeHtml(words)}</a></li>`,
  );
  return `<h2>On this page</h2>${list(links)}`;
}

function turnsOf(pages, { path }, top) {
  const at = pages.findIndex((each) => each.path === path);
  if (at < 0) return '';
  const link = (to, rel, word) =>
    to ? `<a rel="${rel}" href="${top}${to.path}"><small>${word}</small> ${escapeHtml(to.title)}</a>` : '<span></span>';
  return `<nav class="turns" aria-label="Previous and next page">${link(pages[at - 1], 'prev', 'Previous')}${link(pages[at + 1], 'next', 'Next')}</nav>`;
}

/** @param site groups and order of the pages, and the page of each file */
function htmlOf(shown, { groups, ordered, pages }) {
  const { title, path, folder, tokens } = shown;
  const top = '../'.repeat(path.split('/').length - 1) || './';
  const isReference = path.startsWith('docs/reference');
  const here = ' aria-current="true"';
  const addressOf = (href) => {
    const { file, fragment } = targetOf(folder, href);
    if (!file) return { address: href };
    const target = file === 'openapi.json' ? file : pages.find((each) => each.file === file)?.path;
    return { file, address: target && `${top}${target}${fragment}` };
  };
  const outline = outlineOf(tokens);
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="dark light" />
    <title>${escapeHtml(title)} · Darkroom</title>
    <link rel="icon" type="image/svg+xml" href="/src/icon.svg" />
    <script type="module" src="/src/docs/docs.ts"></script>
  </head>
  <body class="docs" data-base="${top}docs/">
    <a class="skip" href="#content">Skip to the text</a>
    <header class="header">
      <a class="brand" href="${top}"><span class="lamp" aria-hidden="true"></span>Darkroom</a>
      <nav aria-label="Service"><a href="${top}">Playground</a><a href="${top}docs"${isReference ? '' : here}>Docs</a><a href="${top}docs/reference"${isReference ? here : ''}>API reference</a></nav>
      <form class="search" role="search"><input type="search" name="q" placeholder="Search" aria-label="Search the documentation" autocomplete="off" /></form>
      <select class="theme" aria-label="Colours"><option value="auto">Auto</option><option value="light">Light</option><option value="dark">Dark</option></select>
    </header>
    <div class="columns">
      <div class="openers"><button class="button" popovertarget="all-pages">All pages</button>${outline && '<button class="button" popovertarget="on-this-page">On this page</button>'}</div>
      <nav class="contents" id="all-pages" popover aria-label="Documentation">${navigation(groups, top, path)}</nav>
      ${outline && `<nav class="outline" id="on-this-page" popover aria-label="On this page">${outline}</nav>`}
      <main id="content" tabindex="-1"><div class="found" role="status"></div><article>${render(tokens, addressOf)}${turnsOf(ordered, shown, top)}</article></main>
    </div>
  </body>
</html>
`;
}

/** Without the list of all pages. */
const indexOf = (pages) =>
  pages.slice(1).flatMap(({ title, path, tokens }) =>
    sectionsOf(tokens).map(({ heading, id, text }, at) => {
      const place = `${path.replace('docs/', '')}#${id}`;
      return { id: place, page: title, heading: at === 0 ? title : heading, path: place, text, isWhole: at === 0 };
    }),
  );

/**
 * Makes a page of each file that `docs/README.md` lists, and of each part of `openapi.json`, in the look of the
 * playground: `docs.html`, `docs/<name>.html`; also `errors/404.html`.
 */
export function docsPages() {
  const folder = import.meta.dirname;
  const groups = allGroups();
  const guides = groups.flatMap((group) => group.pages);
  const start = { file: 'docs/README.md', ...page('Documentation', 'docs', 'docs', read('docs/README.md')) };
  const pages = withFiles([start, ...guides]);
  const missing = page(
    'No such page',
    'errors/404',
    'docs',
    '# There is no such page\n\nThe list of [all pages](README.md) has what there is, and the search finds words in it.',
  );
  const site = { groups, ordered: [start, ...guides], pages };
  const files = new Map([...pages, missing].map((each) => [join(folder, `${each.path}.html`), htmlOf(each, site)]));
  return {
    name: 'docs-pages',
    config: () => ({ build: { rollupOptions: { input: [join(folder, 'index.html'), ...files.keys()] } } }),
    resolveId: (id) => (files.has(id) ? id : id === searchIndex ? `\0${searchIndex}` : undefined),
    load: (id) => (id === `\0${searchIndex}` ? `export default ${JSON.stringify(indexOf(pages))}` : files.get(id)),
  };
}
