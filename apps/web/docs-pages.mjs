import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import MarkdownIt from 'markdown-it';
import anchors from 'markdown-it-anchor';
import GithubSlugger from 'github-slugger';

const docsFolder = join(import.meta.dirname, '..', '..', 'docs');
const styles = join(import.meta.dirname, 'src', 'styles');
const sources = join(import.meta.dirname, 'src', 'docs');
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

/**
 * Renders Markdown as GitHub does, with the same ids of headings. Links between the files become links between the pages; those to other
 * files, which are not served, become plain text.
 * @param base of the addresses of pages, such as `./`
 */
function rendererOf(base) {
  const slugger = new GithubSlugger();
  const markdown = new MarkdownIt({ html: true }).use(anchors, {
    slugify: (text) => slugger.slug(text),
    tabIndex: false,
  });
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
      const [, file, fragment = ''] = /^([\w-]+\.md)(#.*)?$/.exec(href) ?? [];
      plain = file === undefined && !/^(?:https?:|#)/.test(href);
      if (file !== undefined) token.attrSet('href', `${base}${withoutSuffix(file)}${fragment}`);
    }
    if (plain && token.type.startsWith('link_'))
      Object.assign(token, { type: 'text', tag: '', content: '', hidden: true });
    if (token.type === 'link_close') plain = false;
  }
}

/** The parts of a page, each from one heading to the next, as plain text. */
function sectionsOf({ title, name }, text) {
  const slugger = new GithubSlugger();
  const sections = [];
  const tokens = new MarkdownIt({ html: true }).parse(text, {});
  tokens.forEach(({ type, content, children }, at) => {
    const isHeading = tokens[at - 1]?.type === 'heading_open';
    const words = children
      ? children.map((child) => (child.type === 'html_inline' ? '' : child.content)).join(' ')
      : content;
    if (isHeading) sections.push({ page: title, heading: words, path: `${name}#${slugger.slug(content)}`, text: '' });
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
  const group = ({ heading, pages }) => `<h2>${escaped(heading)}</h2><ul>${pages.map(link).join('')}</ul>`;
  return `${groups.map(group).join('')}<h2>Reference</h2><ul><li><a href="${base}reference">API reference</a></li></ul>`;
}

function pageOf({ title, name, body, groups, root }) {
  const base = `${root}docs/`;
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
      <a class="brand" href="${root}"><span class="lamp" aria-hidden="true"></span>Darkroom</a>
      <nav aria-label="Service"><a href="${root}">Playground</a><a href="${root}docs" aria-current="true">Docs</a><a href="${base}reference">API reference</a></nav>
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

/** Makes a page of each file of `docs/`, in the look of the playground: `docs.html`, `docs/<name>.html`, and what the API reference loads. */
export function docsPages() {
  const folder = import.meta.dirname;
  const groups = groupsOf();
  const pages = groups.flatMap((group) => group.pages);
  const files = new Map([
    [join(folder, 'docs.html'), { title: 'Documentation', file: indexFile, root: './' }],
    ...pages.map((page) => [join(folder, 'docs', `${page.name}.html`), { ...page, root: '../' }]),
  ]);
  const read = (file) => readFileSync(join(docsFolder, file), 'utf8');
  return {
    name: 'docs-pages',
    config: () => ({
      build: { rollupOptions: { input: [join(folder, 'index.html'), ...files.keys()] } },
    }),
    resolveId: (id) => (files.has(id) ? id : id === searchIndex ? `\0${searchIndex}` : undefined),
    load(id) {
      if (id === `\0${searchIndex}`)
        return `export default ${JSON.stringify(pages.flatMap((page) => sectionsOf(page, read(page.file))))}`;
      const page = files.get(id);
      if (!page) return undefined;
      const body = rendererOf(`${page.root}docs/`).render(read(page.file));
      return pageOf({ ...page, body, groups });
    },
    generateBundle() {
      const ofReference = (...paths) => paths.map((path) => readFileSync(path, 'utf8')).join('\n');
      const css = ofReference(join(styles, 'tokens.css'), join(styles, 'shell.css'), join(sources, 'reference.css'));
      this.emitFile({ type: 'asset', fileName: 'docs/reference.css', source: css });
      const script = ofReference(join(sources, 'reference-header.js'));
      this.emitFile({ type: 'asset', fileName: 'docs/reference.js', source: script });
    },
  };
}
