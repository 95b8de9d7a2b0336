/** A schema as Markdown: its type, its limits, a table of its fields, and an example. */

/** Values of an enum that are listed where it is used; more stand at the schema alone. */
const maxListed = 20;
/** The rules that say from where to where, and of what. */
const ranges = [
  ['minimum', 'maximum', ''],
  ['minLength', 'maxLength', ' characters'],
  ['minItems', 'maxItems', ' elements'],
];

export const nameOf = ({ $ref }) => $ref?.slice($ref.lastIndexOf('/') + 1);
/** The schemas of which one holds. */
export const variantsOf = ({ anyOf, oneOf }) => anyOf ?? oneOf;
const code = (value) => `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``;
const figure = (value) => value.toLocaleString('en-US');
const distinct = (texts) => [...new Set(texts)];

/** A row of a table. */
export function row(...cells) {
  const inOneLine = (cell) => cell.replaceAll('|', String.raw`\|`).replaceAll('\n', ' ');
  return `| ${cells.map(inOneLine).join(' | ')} |`;
}
export const table = (heads, rows) => [row(...heads), row(...heads.map(() => '---')), ...rows].join('\n');

/** What kind of value it is, such as `array of string`. @param link makes a link of the name of a shared schema */
export function typeOf(schema, link) {
  if (schema.$ref) return link(nameOf(schema));
  const variants = variantsOf(schema);
  if (variants) return distinct(variants.map((variant) => typeOf(variant, link))).join(' or ');
  const types = [schema.type ?? typeof (schema.const ?? schema.enum?.[0] ?? {})].flat();
  const named = (type) => {
    if (type === 'array') return `array of ${typeOf(schema.items, link)}`;
    if (type === 'string' && schema.contentMediaType) return `string of \`${schema.contentMediaType}\``;
    return type === 'string' && schema.format ? `string (${schema.format})` : type;
  };
  return types.map(named).join(' or ');
}

function rangeOf(least, most, unit) {
  if (least === undefined && most === undefined) return [];
  if (most === undefined) return [`at least ${figure(least)}${unit}`];
  if (least === most) return [`${figure(most)}${most === 1 ? unit.replace(/s$/, '') : unit}`];
  return [`${least === undefined ? 'at most' : `${figure(least)} to`} ${figure(most)}${unit}`];
}

/** The values that it takes, in words. */
export function limitsOf(schema, document) {
  return distinct(limitsIn(schema, document)).join('; ');
}

function limitsIn(schema, document) {
  if (schema.$ref) {
    const { enum: values = [] } = document.components.schemas[nameOf(schema)];
    return values.length > 0 && values.length <= maxListed ? [values.map(code).join(', ')] : [];
  }
  const { const: only, enum: values, pattern, uniqueItems, propertyNames, default: usual, items } = schema;
  const isOther = (variant) => variant.type !== 'null';
  return [
    ...(only === undefined ? [] : [code(only)]),
    ...(values ? [values.map(code).join(', ')] : []),
    ...ranges.flatMap(([least, most, unit]) => rangeOf(schema[least], schema[most], unit)),
    ...(pattern ? [`pattern ${code(pattern)}`] : []),
    ...(uniqueItems ? ['each once'] : []),
    ...(propertyNames?.not?.enum ? [`no field of the names ${propertyNames.not.enum.map(code).join(', ')}`] : []),
    ...(usual === undefined ? [] : [`default ${code(usual)}`]),
    ...(variantsOf(schema) ?? []).filter(isOther).flatMap((variant) => limitsIn(variant, document)),
    ...(items ? limitsIn(items, document) : []),
  ];
}

/** The fields of an object that is written inside another one, in an array of them, or as JSON in a text. */
const insideOf = ({ items, contentSchema, ...schema }) =>
  [contentSchema, items, schema].find((each) => each?.properties !== undefined);

const below = (text) => (text === '' ? '' : `<br><small>${text}</small>`);
/** The name of a field or a parameter, for a row of a table. */
export const nameCell = (name, isNeeded) => `\`${name}\`${below(isNeeded ? 'required' : '')}`;
/** The type of a field or a parameter, with its limits below. */
export const typeCell = (schema, { document, link }) => `${typeOf(schema, link)}${below(limitsOf(schema, document))}`;

function rowsOf({ properties, required = [] }, parts, prefix) {
  return Object.entries(properties).flatMap(([field, schema]) => {
    const name = `${prefix}${field}`;
    const isNeeded = required.includes(field);
    const own = row(nameCell(name, isNeeded), typeCell(schema, parts), parts.text(schema.description ?? ''));
    const inside = insideOf(schema);
    return [own, ...(inside ? rowsOf(inside, parts, `${name}${schema.items ? '[]' : ''}.`) : [])];
  });
}

/**
 * The table of the fields of an object.
 * @param parts the `document`, `link` to a schema by its name, and what is made of a description, `text`
 */
export const fieldsOf = (schema, parts) =>
  table(['Field', 'Type and limits', 'Description'], rowsOf(schema, parts, ''));

/**
 * A value that fits a schema, made of the examples in it.
 * @param isBrief leaves out what is not required
 */
export function exampleOf(schema, document, isBrief = false) {
  if (schema.example !== undefined) return schema.example;
  if (schema.$ref) return exampleOf(document.components.schemas[nameOf(schema)], document, isBrief);
  const variants = variantsOf(schema);
  if (variants) return exampleOf(variants[0], document, isBrief);
  if (schema.properties) return objectOf(schema, document, isBrief);
  if (schema.items) return [exampleOf(schema.items, document, isBrief)];
  return schema.default ?? schema.const ?? schema.enum?.[0] ?? plain[[schema.type].flat()[0]];
}

const plain = { boolean: false, integer: 1, number: 1, object: {}, string: 'text' };

function objectOf({ properties, required = [] }, document, isBrief) {
  const isShown = ([field], place) => !isBrief || (required.length > 0 ? required.includes(field) : place === 0);
  const shown = Object.entries(properties).filter(isShown);
  return Object.fromEntries(shown.map(([field, schema]) => [field, exampleOf(schema, document, isBrief)]));
}
