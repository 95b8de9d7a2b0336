import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { slug } from 'github-slugger';

const root = join(import.meta.dirname, '..', '..');
const document = JSON.parse(readFileSync(join(root, 'openapi.json'), 'utf8'));
const { components, info, paths, servers, tags, webhooks } = document;
const { schemas } = components;
const schemasPage = 'reference/schemas';
const pageOfTag = (tag) => `reference/${slug(tag)}`;
/** Enums with more values are listed only at their schema. */
const maxListed = 20;
const usual = /^(?:X-Request-Id|RateLimit-.+)$/;
const ranges = [
  ['minimum', 'maximum', ''],
  ['minLength', 'maxLength', ' characters'],
  ['minItems', 'maxItems', ' elements'],
];

const nameOf = ({ $ref }) => $ref?.split('/').at(-1);
const variantsOf = ({ anyOf, oneOf }) => anyOf ?? oneOf;
const isStream = (type) => type === 'text/event-stream';
const code = (value) => `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``;
const joined = (...texts) => texts.filter(Boolean).join('\n\n');
const row = (...cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll('\n', ' ')).join(' | ')} |`;
const table = (heads, rows) => [row(...heads), row(...heads.map(() => '---')), ...rows].join('\n');
const withNotes = (text, notes) => (notes.length > 0 ? `${text}<br><small>${notes.join('; ')}</small>` : text);

/** @param notes shown below its name */
const rowOf = (name, schema, description, ...notes) =>
  row(withNotes(code(name), notes), withNotes(typeOf(schema), [...new Set(limitsOf(schema))]), described(description));
const tableOf = (head, rows) => table([head, 'Type and limits', 'Description'], rows);

/** Codes of errors become links. */
const described = (text = '') =>
  text
    .replace(/`([A-Z]\w+)`/g, (whole, name) =>
      schemas.ErrorCode.enum.includes(name) ? `[${whole}](errors.md#${name})` : whole,
    )
    .replace(/\bdocs\/errors\.md\b/g, '[the page of errors](errors.md)');

/** The kind of a value, such as `array of string`. */
function typeOf(schema) {
  if (schema.$ref) return `[${nameOf(schema)}](${schemasPage}.md#${slug(`Schema ${nameOf(schema)}`)})`;
  const variants = variantsOf(schema);
  if (variants) return [...new Set(variants.map(typeOf))].join(' or ');
  const named = (type) => {
    if (type === 'array') return `array of ${typeOf(schema.items)}`;
    if (type === 'string' && schema.contentMediaType) return `string of \`${schema.contentMediaType}\``;
    return type === 'string' && schema.format ? `string (${schema.format})` : type;
  };
  return [schema.type ?? typeof (schema.const ?? schema.enum?.[0] ?? {})].flat().map(named).join(' or ');
}

/** The values that a schema takes, in words. */
function limitsOf(schema) {
  if (schema.$ref) {
    const { enum: values = [] } = schemas[nameOf(schema)];
    return values.length > 0 && values.length <= maxListed ? [values.map(code).join(', ')] : [];
  }
  const { const: only, enum: values, pattern, uniqueItems, propertyNames, default: standard, items } = schema;
  return [
    only !== undefined && code(only),
    values?.map(code).join(', '),
    ...ranges.map((range) => rangeOf(schema, range)),
    pattern && `pattern ${code(pattern)}`,
    uniqueItems && 'each once',
    propertyNames?.not?.enum && `no field of the names ${propertyNames.not.enum.map(code).join(', ')}`,
    standard !== undefined && `default ${code(standard)}`,
    ...(variantsOf(schema) ?? []).flatMap(limitsOf),
    ...(items ? limitsOf(items) : []),
  ].filter(Boolean);
}

function rangeOf(schema, [least, most, unit]) {
  const [from, to] = [schema[least]?.toLocaleString('en-US'), schema[most]?.toLocaleString('en-US')];
  if (from === undefined) return to && `at most ${to}${unit}`;
  if (to === undefined) return `at least ${from}${unit}`;
  return from === to ? `${to}${unit.replace(/s$/, to === '1' ? '' : 's')}` : `${from} to ${to}${unit}`;
}

/** Fields of nested objects follow those of their object. */
const fieldsOf = (schema) => tableOf('Field', fieldRows(schema, ''));

function fieldRows({ properties, required = [] }, prefix) {
  return Object.entries(properties).flatMap(([field, schema]) => {
    const name = `${prefix}${field}`;
    const own = rowOf(name, schema, schema.description, ...(required.includes(field) ? ['required'] : []));
    const inside = [schema.contentSchema, schema.items, schema].find((each) => each?.properties);
    return [own, ...(inside ? fieldRows(inside, `${name}${schema.items ? '[]' : ''}.`) : [])];
  });
}

/**
 * A value that fits a schema, made of its examples.
 * @param isBrief leaves out what is not required
 */
function exampleOf(schema, isBrief = false) {
  if (schema.example !== undefined) return schema.example;
  const { properties, required = [], items } = schema;
  const other = schemas[nameOf(schema)] ?? variantsOf(schema)?.[0];
  if (other) return exampleOf(other, isBrief);
  if (items) return [exampleOf(items, isBrief)];
  if (!properties) return schema.default ?? schema.const ?? schema.enum?.[0] ?? plain[[schema.type].flat()[0]];
  const isShown = ([field], place) => !isBrief || (required.length > 0 ? required.includes(field) : place === 0);
  const shown = Object.entries(properties).filter(isShown);
  return Object.fromEntries(shown.map(([field, each]) => [field, exampleOf(each, isBrief)]));
}
const plain = { boolean: false, integer: 1, number: 1, object: {}, string: 'text' };

function curlOf(method, path, { parameters = [], requestBody, responses }) {
  const filled = path.replace(/\{(\w+)\}/g, (_, name) => parameters.find((each) => each.name === name).schema.example);
  const isStreamed = Object.values(responses).some(({ content = {} }) => isStream(Object.keys(content)[0] ?? ''));
  const [[type, { schema } = {}] = []] = Object.entries(requestBody?.content ?? {});
  const json = () => JSON.stringify(exampleOf(schema, true)).replaceAll("'", "'\\''");
  return [
    `curl -s${isStreamed ? 'N' : ''}${method === (type ? 'post' : 'get') ? '' : ` -X ${method.toUpperCase()}`} "$DARKROOM_URL${filled}"`,
    '-H "Authorization: Bearer $DARKROOM_API_KEY"',
    ...(type ? [`-H 'Content-Type: ${type}'`] : []),
    ...(type ? [type === 'application/json' ? `-d '${json()}'` : '--data-binary @weights.safetensors'] : []),
  ].join(' \\\n  ');
}

function parametersText(parameters) {
  const rows = parameters.map(({ name, in: place, required, schema, description }) =>
    rowOf(name, schema, description, `in the ${place}`, ...(required ? ['required'] : [])),
  );
  return `<h3>Parameters</h3>\n\n${tableOf('Name', rows)}`;
}

const bodyText = ({ content, ...rest }) =>
  joined(...Object.entries(content).map(([type, { schema }]) => bodyOfType(type, schema, rest)));

function bodyOfType(type, schema, { required, description }) {
  const limits = schema.type === 'array' ? limitsOf(schema).join('; ') : '';
  const names = [variantsOf(schema) ?? schema.items ?? schema].flat().map(nameOf).filter(Boolean);
  return joined(
    `<h3>Body</h3>\n\n\`${type}\`: ${typeOf(schema)}.${required ? '' : ' It may be left out.'}${limits && ` Limits: ${limits}.`}`,
    described(description),
    ...names.flatMap((name) => [names.length > 1 && `\`${name}\`:`, fieldsOf(schemas[name])]),
    names.length === 0 && schema.properties && fieldsOf(schema),
  );
}

function responsesText(responses, title) {
  const [shared, own] = [true, false].map((is) => Object.entries(responses).filter(([, { $ref }]) => is === !!$ref));
  const kinds = own.flatMap(([, { content = {} }]) =>
    Object.entries(content).flatMap(([type, { schema }]) => (isStream(type) ? variantsOf(schema) : [])),
  );
  const rows = own.map(([status, { description, content = {}, headers = {} }]) => {
    const [[type, { schema } = {}] = []] = Object.entries(content);
    const special = Object.keys(headers).filter((name) => !usual.test(name));
    const body = type ? `\`${type}\`: ${isStream(type) ? 'events' : typeOf(schema)}` : '';
    const links = special.map((name) => `[\`${name}\`](reference.md#response-headers)`);
    return row(status, described(description), body, links.join(', '));
  });
  const errors = shared.map(([, response]) => errorTitle(components.responses[nameOf(response)]));
  const links = errors.map((error) => `[${error}](reference.md#${slug(error)})`).join(', ');
  return joined(
    `<h3>${title}</h3>\n\n${table(['Status', 'Meaning', 'Body', 'Headers'], rows)}`,
    links && `Errors, each a ${typeOf({ $ref: 'Problem' })}: ${links}.`,
    ...kinds.map((event) => `The event \`${event.properties.event.const}\`:\n\n${fieldsOf(event)}`),
  );
}

/** Status and title of an error that operations share, such as `400 Bad Request`. */
function errorTitle({ content }) {
  const { status, title } = Object.values(content)[0].example;
  return `${status} ${title}`;
}

const operations = [...Object.entries(paths), ...Object.entries(webhooks)].flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => {
    const { summary, description, parameters = [], requestBody, responses } = operation;
    const isWebhook = path in webhooks;
    const heading = isWebhook ? `Webhook \`${path}\`` : `\`${method.toUpperCase()} ${path}\``;
    const text = joined(
      `## ${heading}\n\n**${summary}**`,
      described(description),
      parameters.length > 0 && parametersText(parameters),
      requestBody && bodyText(requestBody),
      !isWebhook && `<h3>Example</h3>\n\n\`\`\`sh\n${curlOf(method, path, operation)}\n\`\`\``,
      responsesText(responses, isWebhook ? 'Your answer' : 'Responses'),
    );
    return { heading, summary, text, tag: operation.tags[0], anchor: slug(heading) };
  }),
);
const operationsOf = (tag) => operations.filter((each) => each.tag === tag);

const tagPages = tags.map(({ name: title, description }) => {
  const own = operationsOf(title);
  const contents = own.map(({ summary, anchor, heading }) => `- [${summary}](#${anchor}): ${heading}`).join('\n');
  const text = joined(`# ${title}`, description, contents, ...own.map((each) => each.text));
  return { title, name: pageOfTag(title), text };
});

const schemaTexts = Object.entries(schemas)
  .sort()
  .map(([name, schema]) =>
    joined(
      `## Schema \`${name}\``,
      described(schema.description),
      schema.properties ? fieldsOf(schema) : `${typeOf(schema)}: ${limitsOf(schema).map(described).join('; ')}`,
      schema.properties && `\`\`\`json\n${JSON.stringify(exampleOf(schema), null, 2)}\n\`\`\``,
    ),
  );

const answers = [...Object.values(paths).flatMap(Object.values), components].flatMap((each) =>
  Object.values(each.responses),
);
const headerRows = Object.entries(Object.assign({}, ...answers.map(({ headers }) => headers))).map(
  ([name, { schema, description }]) => rowOf(name, schema, description),
);
const addressRows = servers
  .flatMap(({ variables = {} }) => Object.entries(variables))
  .map(([name, { default: value, enum: values, description }]) =>
    rowOf(name, { type: 'string', default: value, enum: values }, description),
  );
const overview = joined(
  '# API reference',
  info.description.replace(/^###/gm, '##'),
  `The document itself is [/openapi.json](../openapi.json), version ${info.version}.`,
  '## Address and key',
  ...servers.map(({ url, description }) => `\`${url}\`: ${description}`),
  tableOf('Part', addressRows),
  components.securitySchemes.bearer.description.replace(/dr_\S.*(?=\.$)/, '`$&`'),
  ...tags.map(({ name: tag, description }) => {
    const page = `${pageOfTag(tag)}.md`;
    const rows = operationsOf(tag).map((each) => row(`[${each.heading}](${page}#${each.anchor})`, each.summary));
    return `## ${tag}\n\n[${tag}](${page}): ${description}\n\n${table(['Operation', 'What it does'], rows)}`;
  }),
  `## Response headers\n\n${tableOf('Header', headerRows)}`,
  ...Object.entries(components.responses)
    .sort()
    .map(([, response]) => `## ${errorTitle(response)}\n\n${described(response.description)}`),
);

/** One page of all operations, one of each tag, and one of all schemas. */
export const referencePages = [
  { title: 'API reference', name: 'reference', text: overview },
  ...tagPages,
  { title: 'Schemas', name: schemasPage, text: joined('# Schemas', ...schemaTexts) },
];
