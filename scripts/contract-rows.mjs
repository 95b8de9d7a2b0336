import { readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import ts from 'typescript';

/**
 * Lists the statements of docs/contract.md that no test covers. Every list item and table row of the page is a
 * statement and begins with an anchor. test/contract-coverage.json names the tests of each anchor as `<spec file>:
 * <title>`, where the title may begin with the titles of the `describe`s around it, joined by ` > `. A test that does
 * not exist, or is always skipped, covers nothing. Other pages and tables than these two may be given as arguments: a
 * page, its table, another page … The exit status is the number of pages with problems.
 */
const root = dirname(import.meta.dirname);
const [page = 'docs/contract.md', table = 'test/contract-coverage.json', ...others] = process.argv.slice(2);
const read = (file) => readFileSync(resolve(root, file), 'utf8');

/** Statements in the page's order: the anchor, if there is one, and the text. */
function statements(markdown) {
  const lines = markdown.split('\n');
  const isRow = (line) => /^\s*(?:[-*+] |\d+\. |\|)/.test(line);
  // A table's first two lines are its head.
  const isHead = (line, at) =>
    line.startsWith('|') && [lines[at], lines[at + 1]].some((each) => /^\| -/.test(each ?? ''));
  return lines.flatMap((line, at) =>
    isRow(line) && !isHead(line, at) ? [{ id: /<a id="([\w-]+)">/.exec(line)?.[1], text: line.trim() }] : [],
  );
}

/** The titles of a spec file's tests, each after those of its `describe`s. */
function titlesOf(file) {
  const titles = [];
  const visit = (node, path) => {
    let inside = path;
    if (ts.isCallExpression(node) && node.arguments.length > 1) {
      const callee = node.expression.getText();
      if (/^(?:[xf]?(?:it|describe)\b.*\.(?:skip|todo)\b|x(?:it|describe)\b)/.test(callee)) return;
      const kind = /^(it|itOnce|describe|describeOnce)\b/.exec(callee)?.[1];
      if (kind) {
        const [title] = node.arguments;
        inside = [...path, 'text' in title ? title.text : title.getText()];
        if (kind.startsWith('it')) titles.push(inside.join(' > '));
      }
    }
    ts.forEachChild(node, (child) => visit(child, inside));
  };
  visit(ts.createSourceFile(file, read(file), ts.ScriptTarget.Latest, true), []);
  return titles;
}

const known = new Map();
/**
 * @returns whether a test of this name exists; it may be that of a spec file below `test`, or of one beside its source.
 */
function exists(name) {
  const at = name.indexOf(': ');
  const [spec, title] = [name.slice(0, at), name.slice(at + 2)];
  const file = join(/^(?:apps|libs|packages)\//.test(spec) ? '' : 'test', `${spec}.spec.ts`);
  if (!known.has(file)) {
    try {
      known.set(file, titlesOf(file));
    } catch (error) {
      if (error.code !== 'ENOENT') throw error;
      known.set(file, []);
    }
  }
  return known.get(file).some((each) => each === title || each.endsWith(` > ${title}`));
}

/** Prints the problems of a page and their number. @returns whether there are none. */
function isCovered(page, table) {
  const rows = statements(read(page));
  const coverage = JSON.parse(read(table));
  const ids = rows.flatMap(({ id }) => id ?? []);
  const problems = [
    ...rows.filter(({ id }) => !id).map(({ text }) => `no anchor: ${text.slice(0, 80)}`),
    ...ids.filter((id, at) => ids.indexOf(id) !== at).map((id) => `anchor used twice: ${id}`),
    ...ids.filter((id) => !coverage[id]?.length).map((id) => `no test: ${id}`),
    ...Object.keys(coverage)
      .filter((id) => !ids.includes(id))
      .map((id) => `no statement: ${id}`),
    ...Object.entries(coverage).flatMap(([id, tests]) =>
      tests.filter((test) => !exists(test)).map((test) => `no such test: ${id}: ${test}`),
    ),
  ];
  for (const problem of problems) console.log(problem);
  console.log(`${ids.length} statements, ${problems.length} problems`);
  return problems.length === 0 && ids.length > 0;
}

const files = [page, table, ...others];
const pages = files.flatMap((file, at) => (at % 2 === 0 ? [[file, files[at + 1]]] : []));
process.exitCode = pages.filter(([each, its]) => !isCovered(each, its)).length;
