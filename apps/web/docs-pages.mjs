import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import MarkdownIt from 'markdown-it';
import anchors from 'markdown-it-anchor';
import GithubSlugger from 'github-slugger';
import { referencePages } from './reference/pages.mjs';

const root = join(import.meta.dirname, '..', '..');
const docsFolder = join(root, 'docs');
/** The page of all pages; its list says which there are, in which order. */
const indexFile = 'README.md';
/** What the search looks through; a module that is made here. */
const searchIndex = 'virtual:search-index';

const withoutSuffix = (file) => file.replace(/\.md$/, '');
const escaped = (text) =>
  text.replace(/[&<>"]/g, (character) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[character]);

/** The groups of pages as `docs/README.md` lists them. */
export function groupsOf(folder = docsFolder) {
  const groups = [];
  for (const line of readFileSync(join(folder, indexFile), 'utf8').split('\n')) {
    const [, heading] = /^## (.+)$/.exec(line) ?? [];
    if (heading) groups.push({ heading, pages: [] });
    const [, title, file] = /^- \[([^\]]+)\]\(([\w-]+\.md)\)/.exec(line) ?? [];
    if (file) groups.at(-1).pages.push({ title, file, name: withoutSuffix(file) });
  }
  return groups;
}

/** Gives each heading of a page an id: its own, where it has one, else that of GitHub. */
function idsOf({ ids }) {
  const slugger = new GithubSlugger();
  return (text) => ids?.get(text.replaceAll('`', '')) ?? slugger.slug(text);
}

/**
 * Renders Markdown as GitHub does, with the same ids of headings. Links between the files become links between the
 * pages; those to other files, which are not served, become plain text.
 * @param base of the addresses of pages, such as `./`
 */
function rendererOf(page, base) {
  const markdown = new MarkdownIt({ html: true }).use(anchors, { slugify: idsOf(page), tabIndex: false });
  const { rules } = markdown.renderer;
  const { fence } = rules;
  // What scrolls sideways must be reachable by the keyboard.
  rules.fence = (...parts) => fence(...parts).replace('<pre>', '<pre tabindex="0">');
  rules.table_open = () => '<div class="scroll" tabindex="0"><table>';
  rules.table_close = () => '</table></div>';
  markdown.core.ruler.push('links', ({ tokens }) => {
    for (const { children } of tokens) relink(children ?? [], base);
  });
  return markdown;
}

function relink(tokens, base) {
  let plain = false;
  for (const token of tokens) {
    if (token.type === 'link_open') {
      const href = token.attrGet('href');
      const [, file, fragment = ''] = /^([\w/-]+\.md|\.\.\/openapi\.json)(#.*)?$/.exec(href) ?? [];
      plain = file === undefined && !/^(?:https?:|#)/.test(href);
      if (file !== undefined) token.attrSet('href', `${base}${withoutSuffix(file)}${fragment}`);
    }
    if (plain && token.type.startsWith('link_'))
      Object.assign(token, { type: 'text', tag: '', content: '', hidden: true });
    if (token.type === 'link_close') plain = false;
  }
}

/** The parts of a page, each from one heading to the next, as plain text. */
function sectionsOf(page) {
  const { title, name, text: markdown } = page;
  const idOf = idsOf(page);
  const sections = [];
  const tokens = new MarkdownIt({ html: true }).parse(markdown, {});
  tokens.forEach(({ type, content, children }, at) => {
    const isHeading = tokens[at - 1]?.type === 'heading_open';
    const words = children
      ? children.map((child) => (child.type === 'html_inline' ? '' : child.content)).join(' ')
      : content;
    if (isHeading)
      sections.push({
        page: title,
        heading: words.replace(/\s+/g, ' ').trim(),
        path: `${name}#${idOf(content)}`,
        text: '',
      });
    else if (type === 'inline' || type === 'fence') {
      const section = sections.at(-1);
      if (section) section.text += ` ${words}`;
    }
  });
  return sections.map((section, id) => ({
    id: `${name}/${id}`,
    ...section,
    text: section.text.replace(/\s+/g, ' ').trim(),
  }));
}

function navigation(groups, base, current) {
  const link = ({ title, name }) =>
    `<li><a href="${base}${name}"${name === current ? ' aria-current="page"' : ''}>${escaped(title)}</a></li>`;
  return groups
    .map(({ heading, pages }) => `<h2>${escaped(heading)}</h2><ul>${pages.map(link).join('')}</ul>`)
    .join('');
}

function htmlOf(page, groups) {
  const { title, name, text } = page;
  // `docs.html` has no name and lies at the top.
  const top = name === '' ? './' : '../'.repeat(name.split('/').length);
  const base = `${top}docs/`;
  const isReference = name.startsWith('reference');
  const here = ' aria-current="true"';
  const body = rendererOf(page, base).render(text);
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="dark light" />
    <title>${escaped(title)} · Darkroom</title>
    <link rel="icon" type="image/svg+xml" href="/src/icon.svg" />
    <script type="module" src="/src/docs/docs.ts"></script>
  </head>
  <body class="docs" data-base="${base}">
    <a class="skip" href="#content">Skip to the text</a>
    <header class="header">
      <a class="brand" href="${top}"><span class="lamp" aria-hidden="true"></span>Darkroom</a>
      <nav aria-label="Service"><a href="${top}">Playground</a><a href="${top}docs"${isReference ? '' : here}>Docs</a><a href="${base}reference"${isReference ? here : ''}>API reference</a></nav>
      <form class="search" role="search"><input type="search" name="q" placeholder="Search" aria-label="Search the documentation" autocomplete="off" /></form>
    </header>
    <div class="columns">
      <nav class="contents" aria-label="Documentation">${navigation(groups, base, name)}</nav>
      <main id="content" tabindex="-1"><div class="found" role="status"></div><article>${body}</article></main>
    </div>
  </body>
</html>
`;
}

/** Every page of the documentation in the groups of its list. Their names are their addresses below `docs/`. */
function allGroups() {
  const read = (...path) => readFileSync(join(...path), 'utf8');
  const guides = groupsOf().map(({ heading, pages }) => ({
    heading,
    pages: pages.map((page) => ({ ...page, text: read(docsFolder, page.file) })),
  }));
  const reference = referencePages(JSON.parse(read(root, 'openapi.json')), read(docsFolder, 'errors.md'));
  return [...guides, { heading: 'Reference', pages: reference }];
}

/**
 * Makes a page of each file of `docs/` and of each part of `openapi.json`, in the look of the playground:
 * `docs.html`, `docs/<name>.html`.
 */
export function docsPages() {
  const folder = import.meta.dirname;
  const groups = allGroups();
  const pages = groups.flatMap((group) => group.pages);
  const list = { title: 'Documentation', text: readFileSync(join(docsFolder, indexFile), 'utf8') };
  const files = new Map([
    [join(folder, 'docs.html'), htmlOf({ ...list, name: '' }, groups)],
    ...pages.map((page) => [join(folder, 'docs', `${page.name}.html`), htmlOf(page, groups)]),
  ]);
  return {
    name: 'docs-pages',
    config: () => ({
      build: { rollupOptions: { input: [join(folder, 'index.html'), ...files.keys()] } },
    }),
    resolveId: (id) => (files.has(id) ? id : id === searchIndex ? `\0${searchIndex}` : undefined),
    load: (id) =>
      id === `\0${searchIndex}` ? `export default ${JSON.stringify(pages.flatMap(sectionsOf))}` : files.get(id),
  };
}
