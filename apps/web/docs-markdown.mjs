import GithubSlugger from 'github-slugger';
import hljs from 'highlight.js/lib/common';
import MarkdownIt from 'markdown-it';
import anchors from 'markdown-it-anchor';

/** Renders Markdown as GitHub does, with the same ids of headings, and samples in colours. */
const markdown = new MarkdownIt({
  html: true,
  highlight: (text, language) => (hljs.getLanguage(language) ? hljs.highlight(text, { language }).value : ''),
});
export const { escapeHtml } = markdown.utils;
const { rules } = markdown.renderer;
const { fence } = rules;
const { image } = rules;
// Seen from where the page of a guide is built; the bundler takes the file along.
rules.image = (tokens, at, ...rest) => {
  tokens[at].attrSet('src', `../../../docs/${tokens[at].attrGet('src')}`);
  return image(tokens, at, ...rest);
};
// Parts that scroll sideways must be reachable by the keyboard.
rules.fence = (tokens, at, ...rest) => {
  const sample = fence(tokens, at, ...rest).replace('<pre>', '<pre tabindex="0">');
  return `<div class="sample"><div class="bar"><small>${escapeHtml(tokens[at].info)}</small></div>${sample}</div>`;
};
rules.table_open = () => '<div class="scroll" tabindex="0"><table>';
rules.table_close = () => '</table></div>';
/** A tag that a text uses; anything else in angle brackets, such as `<name>`, is meant as words. */
const isTag = ({ type, content }) => type === 'html_inline' && /^<\/?(?:a|br|small)\b/.test(content);
rules.html_inline = (tokens, at) => (isTag(tokens[at]) ? tokens[at].content : escapeHtml(tokens[at].content));
/** A link to a file that is not served becomes plain words. */
rules.link_open = (tokens, at, options, env, self) => {
  const { address, file } = env.addressOf(tokens[at].attrGet('href'));
  env.unserved = address === undefined ? file : undefined;
  if (address === undefined) return '';
  tokens[at].attrSet('href', address);
  return self.renderToken(tokens, at, options);
};
rules.link_close = (tokens, at, options, env, self) =>
  env.unserved === undefined
    ? self.renderToken(tokens, at, options)
    : ` (<code>${escapeHtml(env.unserved)}</code> among the sources)`;
/** Each heading below the title is a link to itself, to be passed on. */
const linkHeading = anchors.permalink.headerLink({ class: 'heading' });
markdown.use(anchors, {
  slugifyWithState: (text, { env }) => env.slugger.slug(text),
  tabIndex: false,
  permalink: (slug, options, state, at) => state.tokens[at].tag !== 'h1' && linkHeading(slug, options, state, at),
});
markdown.core.ruler.push('labels', ({ tokens }) => label(tokens));

/** On a narrow screen table rows become blocks, in which each cell names its column. */
function label(tokens) {
  let heads = [];
  let column = 0;
  tokens.forEach((token, at) => {
    if (token.type === 'table_open') heads = [];
    else if (token.type === 'th_open') heads.push(wordsOf(tokens[at + 1]));
    else if (token.type === 'tr_open') column = 0;
    else if (token.type === 'td_open') token.attrSet('data-label', heads[column++]);
  });
}

/** A text as tokens, for the functions below. */
export const tokensOf = (text) => markdown.parse(text, { slugger: new GithubSlugger() });

/** @param addressOf gives the file of the target of a link, and the address at which it is served, if it is */
export const render = (tokens, addressOf) => markdown.renderer.render(tokens, markdown.options, { addressOf });

/** What an inline token shows, without tags. */
const wordsOf = ({ children }) =>
  children
    .filter((token) => !isTag(token))
    .map(({ type, content }) => (/break$/.test(type) ? ' ' : content))
    .join('');

export const headingsOf = (tokens) =>
  tokens.flatMap((token, at) =>
    token.type === 'heading_open'
      ? [{ level: Number(token.tag.slice(1)), id: token.attrGet('id'), words: wordsOf(tokens[at + 1]) }]
      : [],
  );

/** Targets of the links, as written. */
export const linksOf = (tokens) =>
  tokens.flatMap(({ children }) =>
    (children ?? []).flatMap((token) => (token.type === 'link_open' ? [token.attrGet('href')] : [])),
  );

/** The parts of a text, each from one heading to the next, in plain words. */
export function sectionsOf(tokens) {
  const sections = [];
  tokens.forEach((token, at) => {
    if (token.type !== 'inline' && token.type !== 'fence') return;
    const words = (token.children ? wordsOf(token) : token.content).replace(/\s+/g, ' ').trim();
    const opening = tokens[at - 1];
    if (opening?.type === 'heading_open') sections.push({ heading: words, id: opening.attrGet('id'), text: '' });
    else if (sections.length > 0) sections.at(-1).text += ` ${words}`;
  });
  return sections;
}
