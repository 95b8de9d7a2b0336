import { slug } from 'github-slugger';
import { errorTitle, operationText } from './operation.mjs';
import {
  exampleOf,
  fieldsOf,
  limitsOf,
  nameCell,
  nameOf,
  row,
  table,
  typeCell,
  typeOf,
  variantsOf,
} from './schema.mjs';

const overview = 'reference';
const shared = 'reference/schemas';
const methods = ['get', 'put', 'post', 'patch', 'delete'];
const pageOfTag = (tag) => `reference/${slug(tag)}`;

/** Every operation and webhook, with its heading. */
function operationsOf({ paths, webhooks }) {
  const of = (items, isWebhook) =>
    Object.entries(items).flatMap(([path, item]) =>
      Object.keys(item)
        .filter((key) => methods.includes(key))
        .map((method) => {
          const heading = isWebhook ? `Webhook \`${path}\`` : `\`${method.toUpperCase()} ${path}\``;
          return { method, path, isWebhook, heading, operation: item[method], tag: item[method].tags[0] };
        }),
    );
  return [...of(paths, false), ...of(webhooks, true)];
}

/** Names of the schemas that a part of the document needs, and those that these need. */
function schemasOf(part, document, found = new Set()) {
  if (typeof part !== 'object' || part === null) return found;
  const name = nameOf(part);
  if (part.$ref?.startsWith('#/components/responses/')) schemasOf(document.components.responses[name], document, found);
  else if (name && !found.has(name)) schemasOf(document.components.schemas[name], document, found.add(name));
  for (const each of Object.values(part)) schemasOf(each, document, found);
  return found;
}

/**
 * Where each schema is described: with the first operation whose body it is, else on the page of the only tag that
 * needs it, else on the page of those that several need.
 */
function homesOf(document, operations) {
  const tags = new Map();
  for (const { operation, tag } of operations)
    for (const name of schemasOf(operation, document)) tags.set(name, (tags.get(name) ?? new Set()).add(tag));
  const homes = new Map();
  for (const [name, [tag, ...others]] of tags)
    homes.set(name, { page: others.length > 0 ? shared : pageOfTag(tag), anchor: `schema-${name}` });
  const claimed = new Set();
  for (const { operation, tag, isWebhook } of operations)
    for (const { schema } of Object.values(isWebhook ? {} : (operation.requestBody?.content ?? {})))
      for (const name of [variantsOf(schema) ?? schema.items ?? schema].flat().map(nameOf))
        if (name && !claimed.has(name)) {
          claimed.add(name);
          homes.set(name, { ...homes.get(name), page: pageOfTag(tag), operationId: operation.operationId });
        }
  return homes;
}

/** A description with links from the codes of errors to the page of errors. */
function linkerOfCodes({ components }, errors) {
  const places = new Map();
  let place = '';
  for (const line of errors.split('\n')) {
    if (line.startsWith('## ')) place = slug(line.slice(3));
    const [, code] = /^\| `(\w+)` \|/.exec(line) ?? [];
    if (code && components.schemas.ErrorCode.enum.includes(code)) places.set(code, place);
  }
  return (text) =>
    text
      .replace(/`([A-Z]\w+)`/g, (whole, code) =>
        places.has(code) ? `[${whole}](errors.md#${places.get(code)})` : whole,
      )
      .replace(/\bdocs\/errors\.md\b/g, '[the page of errors](errors.md)');
}

/** The schemas whose home is a page, with a heading each. */
function schemaSections(page, parts) {
  const { document, homes } = parts;
  const names = [...homes].filter(([, home]) => home.page === page && !home.operationId).map(([name]) => name);
  return names.sort().map((name) => {
    const schema = document.components.schemas[name];
    const description = parts.text(schema.description ?? '');
    const example = `\`\`\`json\n${JSON.stringify(exampleOf(schema, document), null, 2)}\n\`\`\``;
    const body = schema.properties
      ? `${fieldsOf(schema, parts)}\n\n${example}`
      : `${typeOf(schema, parts.link)}: ${parts.text(limitsOf(schema, document))}`;
    return { heading: `Schema \`${name}\``, id: homes.get(name).anchor, text: `${description}\n\n${body}` };
  });
}

function responseHeaders({ paths, components }) {
  const responses = [
    ...Object.values(paths)
      .flatMap(Object.values)
      .flatMap((each) => Object.values(each.responses)),
  ];
  const told = new Map();
  for (const { headers = {} } of [...responses, ...Object.values(components.responses)])
    for (const [name, header] of Object.entries(headers)) told.set(name, header);
  const rows = [...told].map(([name, { schema, description }]) =>
    row(nameCell(name), typeCell(schema, { document: { components } }), description),
  );
  return table(['Header', 'Type and limits', 'Description'], rows);
}

function overviewPage(operations, parts) {
  const { info, servers, tags, components } = parts.document;
  const variables = servers.flatMap(({ variables: of = {} }) => Object.entries(of));
  const listed = (tag) =>
    operations
      .filter((each) => each.tag === tag)
      .map(({ heading, operation }) =>
        row(`[${heading}](${pageOfTag(tag)}.md#${operation.operationId})`, operation.summary),
      );
  const problems = Object.entries(components.responses)
    .sort()
    .map(([name, response]) => ({
      heading: errorTitle(response),
      id: name.toLowerCase(),
      text: parts.text(response.description),
    }));
  const sections = [
    { heading: 'Address and key', text: addressText(servers, variables, components.securitySchemes.bearer) },
    ...tags.map(({ name, description }) => ({
      heading: name,
      text: `[${name}](${pageOfTag(name)}.md): ${description}\n\n${table(['Operation', 'What it does'], listed(name))}`,
    })),
    { heading: 'Response headers', text: responseHeaders(parts.document) },
    ...problems,
  ];
  const introduction = `The document itself is [/openapi.json](../openapi.json), version ${info.version}.`;
  return pageOf('API reference', overview, [info.description.replace(/^###/gm, '##'), introduction], sections);
}

function addressText(servers, variables, { description }) {
  const rows = variables.map(([name, { default: value, enum: values = [], description: text }]) =>
    row(`\`${name}\``, `\`${value}\``, values.map((each) => `\`${each}\``).join(', '), text),
  );
  return [
    ...servers.map(({ url, description: text }) => `\`${url}\`: ${text}`),
    table(['Part', 'Default', 'Values', 'Description'], rows),
    description.replace(/dr_\S.*(?=\.$)/, '`$&`'),
  ].join('\n\n');
}

/**
 * A page of Markdown. Headings have ids of their own where GitHub's would change with a word, or would not be unique.
 */
function pageOf(title, name, introduction, sections) {
  const ids = new Map(sections.map(({ heading, id }) => [heading.replaceAll('`', ''), id ?? slug(heading)]));
  const texts = sections.map(({ heading, text }) => `## ${heading}\n\n${text}`);
  return { title, name, ids, text: [`# ${title}`, ...introduction, ...texts].join('\n\n') };
}

/**
 * The reference as pages of Markdown: one of all operations, one of each tag, and one of the schemas
 * that several tags need.
 * @param document what `openapi.json` has
 * @param errors the text of `docs/errors.md`, which the codes of errors are linked to
 */
export function referencePages(document, errors) {
  const operations = operationsOf(document);
  const homes = homesOf(document, operations);
  const text = linkerOfCodes(document, errors);
  const link = (name) => `[${name}](${homes.get(name).page}.md#${homes.get(name).anchor})`;
  const parts = { document, homes, link, text };
  const tagPages = document.tags.map(({ name: tag, description }) => {
    const name = pageOfTag(tag);
    const sections = operations
      .filter((each) => each.tag === tag)
      .map((each) => ({
        heading: each.heading,
        id: each.operation.operationId,
        text: operationText(each.operation, each, parts),
        summary: each.operation.summary,
      }));
    const contents = sections.map(({ summary, id, heading }) => `- [${summary}](#${id}): ${heading}`).join('\n');
    return pageOf(tag, name, [description, contents], [...sections, ...schemaSections(name, parts)]);
  });
  const introduction = 'What the operations of several pages take or answer with.';
  return [
    overviewPage(operations, parts),
    ...tagPages,
    pageOf('Shared schemas', shared, [introduction], schemaSections(shared, parts)),
  ];
}
