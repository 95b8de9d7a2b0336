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

/** Headers that every answer has. */
const usual = /^(?:X-Request-Id|RateLimit-.+)$/;
const heading = (level, id, text) => `<h${level} id="${id}">${text}</h${level}>`;
const paragraphs = (...texts) => texts.filter((text) => text).join('\n\n');

/**
 * An operation as Markdown, without its heading.
 * @param parts see `fieldsOf`; `homes` says where each schema is described.
 */
export function operationText(operation, { method, path, isWebhook }, parts) {
  const { operationId, summary, description, parameters = [], requestBody, responses } = operation;
  return paragraphs(
    `**${summary}**`,
    parts.text(description ?? ''),
    parameters.length > 0 && heading(3, `${operationId}-parameters`, 'Parameters'),
    parameters.length > 0 && parametersOf(parameters, parts),
    requestBody && heading(3, `${operationId}-body`, 'Body'),
    requestBody && bodyOf(operationId, requestBody, parts),
    !isWebhook && heading(3, `${operationId}-example`, 'Example'),
    !isWebhook && `\`\`\`sh\n${curlOf(method, path, operation, parts.document)}\n\`\`\``,
    heading(3, `${operationId}-responses`, isWebhook ? 'Your answer' : 'Responses'),
    responsesOf(responses, parts),
    variantsOfAnswer(responses, parts),
  );
}

function parametersOf(parameters, parts) {
  const rows = parameters.map(({ name, in: place, required, schema, description = '' }) =>
    row(nameCell(name, required), place, typeCell(schema, parts), parts.text(description)),
  );
  return table(['Name', 'In', 'Type and limits', 'Description'], rows);
}

function bodyOf(operationId, { content, required, description }, parts) {
  const [[type, { schema }]] = Object.entries(content);
  const kind = `\`${type}\`: ${typeOf(schema, parts.link)}.`;
  const limits = limitsOf(schema.$ref ? {} : schema, parts.document);
  const names = [variantsOf(schema) ?? schema.items ?? schema].flat().map(nameOf);
  const own = names.filter((name) => name && parts.homes.get(name)?.operationId === operationId);
  return paragraphs(
    `${kind}${required ? '' : ' It may be left out.'}${limits && !schema.oneOf ? ` Limits: ${limits}.` : ''}`,
    parts.text(description ?? ''),
    ...own.flatMap((name) => [
      heading(4, parts.homes.get(name).anchor, `<code>${name}</code>`),
      fieldsOf(parts.document.components.schemas[name], parts),
    ]),
  );
}

function responsesOf(responses, parts) {
  const entries = Object.entries(responses);
  const rows = entries
    .filter(([, response]) => !response.$ref)
    .map(([status, { description, content = {}, headers = {} }]) => {
      const [[type, { schema } = {}] = []] = Object.entries(content);
      const special = Object.keys(headers).filter((name) => !usual.test(name));
      return row(
        status,
        parts.text(description),
        type ? `\`${type}\`: ${isStream(type) ? 'events' : typeOf(schema, parts.link)}` : '',
        special.map((name) => `[\`${name}\`](reference.md#response-headers)`).join(', '),
      );
    });
  // What all operations share stands on the first page.
  const errors = entries
    .filter(([, response]) => response.$ref)
    .map(([, response]) => errorLink(nameOf(response), parts));
  return paragraphs(
    table(['Status', 'Meaning', 'Body', 'Headers'], rows),
    errors.length > 0 && `Errors, each a ${parts.link('Problem')}: ${errors.join(', ')}.`,
  );
}

const errorLink = (name, { document }) =>
  `[${errorTitle(document.components.responses[name])}](reference.md#${name.toLowerCase()})`;

/** Status and title of an error that operations share, such as `400 Bad Request`. */
export function errorTitle({ content }) {
  const { status, title } = Object.values(content)[0].example;
  return `${status} ${title}`;
}

const isStream = (type) => type === 'text/event-stream';

/** The kinds of events of a stream, which no name is given to. */
function variantsOfAnswer(responses, parts) {
  const streams = Object.values(responses).flatMap(({ content = {} }) =>
    Object.entries(content).flatMap(([type, { schema }]) => (isStream(type) ? variantsOf(schema) : [])),
  );
  return paragraphs(
    ...streams.flatMap((event) => [`The event \`${event.properties.event.const}\`:`, fieldsOf(event, parts)]),
  );
}

/** The request as a command of a shell, made of the examples. */
function curlOf(method, path, { parameters = [], requestBody, responses }, document) {
  const filled = path.replace(/\{(\w+)\}/g, (_, name) => parameters.find((each) => each.name === name).schema.example);
  const isStreamed = Object.values(responses).some(({ content = {} }) => Object.keys(content).some(isStream));
  const [[type, { schema } = {}] = []] = Object.entries(requestBody?.content ?? {});
  const isJson = type === 'application/json';
  const body = isJson && JSON.stringify(exampleOf(schema, document, true)).replaceAll("'", String.raw`'\''`);
  const isImplied = method === (type ? 'post' : 'get');
  return [
    `curl -s${isStreamed ? 'N' : ''}${isImplied ? '' : ` -X ${method.toUpperCase()}`} "$DARKROOM_URL${filled}"`,
    '-H "Authorization: Bearer $DARKROOM_API_KEY"',
    ...(type ? [`-H 'Content-Type: ${type}'`] : []),
    ...(type ? [isJson ? `-d '${body}'` : '--data-binary @weights.safetensors'] : []),
  ].join(' \\\n  ');
}
