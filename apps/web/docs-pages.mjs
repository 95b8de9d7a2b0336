import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import MarkdownIt from 'markdown-it';
import anchors from 'markdown-it-anchor';
import GithubSlugger from 'github-slugger';
import { referencePages } from './reference.mjs';

const docsFolder = join(import.meta.dirname, '..', '..', 'docs');
/** The module that the search looks through, which is made here. */
const searchIndex = 'virtual:search-index';
const readDocs = (file) => readFileSync(join(docsFolder, file), 'utf8');

/** The groups of pages as `docs/README.md` lists them, and the reference. A page's name is its address below `docs/`. */
function allGroups() {
  const guides = readDocs('README.md')
    .split(/^## /m)
    .slice(1)
    .map((part) => ({
      heading: part.split('\n')[0],
      pages: [...part.matchAll(/^- \[([^\]]+)\]\(([\w-]+)\.md\)/gm)].map(([, title, name]) => ({
        title,
        name,
        text: readDocs(`${name}.md`),
      })),
    }));
  return [...guides, { heading: 'Reference', pages: referencePages }];
}

/**
 * Renders Markdown as GitHub does, with the same ids of headings. Links between the files become links between the
 * pages; those to other files, which are not served, become plain text.
 */
const markdown = new MarkdownIt({ html: true });
const { escapeHtml } = markdown.utils;
const { rules } = markdown.renderer;
const { fence } = rules;
// Parts that scroll sideways must be reachable by the keyboard.
rules.fence = (...parts) => fence(...parts).replace('<pre>', '<pre tabindex="0">');
rules.table_open = () => '<div class="scroll" tabindex="0"><table>';
rules.table_close = () => '</table></div>';
markdown.use(anchors, { slugifyWithState: (text, { env }) => env.slugger.slug(text), tabIndex: false });
markdown.core.ruler.push('links', ({ tokens, env }) => {
  for (const { children } of tokens) relink(children ?? [], env.base);
});

function relink(tokens, base) {
  let plain = false;
  for (const token of tokens) {
    if (token.type === 'link_open') {
      const href = token.attrGet('href');
      const [, file, fragment = ''] = /^([\w/-]+\.md|\.\.\/openapi\.json)(#.*)?$/.exec(href) ?? [];
      plain = file === undefined && !/^(?:https?:|#)/.test(href);
      if (file !== undefined) token.attrSet('href', `${base}${file.replace(/\.md$/, '')}${fragment}`);
    }
    if (plain && token.type.startsWith('link_'))
      Object.assign(token, { type: 'text', tag: '', content: '', hidden: true });
    if (token.type === 'link_close') plain = false;
  }
}

/** A page's Markdown as tokens. @param base of the addresses of other pages, such as `./` */
const tokensOf = ({ text }, base) => markdown.parse(text, { base, slugger: new GithubSlugger() });

/** The parts of a page, each from one heading to the next, as plain text. */
function sectionsOf(page) {
  const sections = [];
  const tokens = tokensOf(page, '');
  tokens.forEach(({ type, content, children }, at) => {
    if (type !== 'inline' && type !== 'fence') return;
    const shown = children?.filter((child) => child.type !== 'html_inline').map((child) => child.content);
    const words = (shown?.join(' ') ?? content).replace(/\s+/g, ' ').trim();
    const opening = tokens[at - 1];
    if (opening?.type === 'heading_open') {
      const path = `${page.name}#${opening.attrGet('id')}`;
      sections.push({ id: path, page: page.title, heading: words, path, text: '' });
    } else if (sections.length > 0) sections.at(-1).text += ` ${words}`;
  });
  return sections;
}

function navigation(groups, base, current) {
  const link = ({ title, name }) =>
    `<li><a href="${base}${name}"${name === current ? ' aria-current="page"' : ''}>${escapeHtml(title)}</a></li>`;
  return groups
    .map(({ heading, pages }) => `<h2>${escapeHtml(heading)}</h2><ul>${pages.map(link).join('')}</ul>`)
    .join('');
}

function htmlOf(page, groups) {
  const { title, name } = page;
  // `docs.html` has no name and lies at the top.
  const top = name === '' ? './' : '../'.repeat(name.split('/').length);
  const base = `${top}docs/`;
  const isReference = name.startsWith('reference');
  const here = ' aria-current="true"';
  const body = markdown.renderer.render(tokensOf(page, base), markdown.options, {});
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

/**
 * Makes a page of each file of `docs/` and of each part of `openapi.json`, in the look of the playground:
 * `docs.html`, `docs/<name>.html`.
 */
export function docsPages() {
  const folder = import.meta.dirname;
  const groups = allGroups();
  const pages = groups.flatMap((group) => group.pages);
  const list = { title: 'Documentation', name: '', text: readDocs('README.md') };
  const files = new Map(
    [list, ...pages].map((page) => [join(folder, `${join('docs', page.name)}.html`), htmlOf(page, groups)]),
  );
  return {
    name: 'docs-pages',
    config: () => ({ build: { rollupOptions: { input: [join(folder, 'index.html'), ...files.keys()] } } }),
    resolveId: (id) => (files.has(id) ? id : id === searchIndex ? `\0${searchIndex}` : undefined),
    load: (id) =>
      id === `\0${searchIndex}` ? `export default ${JSON.stringify(pages.flatMap(sectionsOf))}` : files.get(id),
  };
}
