import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const root = join(__dirname, '..', '..');
const page = readFileSync(join(root, 'docs', 'contract.md'), 'utf8');
const coverage = JSON.parse(readFileSync(join(root, 'test', 'contract-coverage.json'), 'utf8')) as Record<
  string,
  string[]
>;

/** A changed page or table, and what is found. */
const changed: { name: string; statements?: string; tests?: object; problems: string[] }[] = [
  ...[
    ['a list item', '- A promise.', 'no anchor: - A promise.'],
    [
      'a table row',
      '| Route | What |\n| --- | --- |\n| GET /v1/x | a promise |',
      'no anchor: | GET /v1/x | a promise |',
    ],
    ['one without tests', '- <a id="promise"></a>A promise.', 'no test: promise'],
    ['an anchor that is there', '- <a id="generation-webhook"></a>Again.', 'anchor used twice: generation-webhook'],
  ].map(([kind, statement, problem]) => ({
    name: `there is a new one: ${kind}`,
    statements: `${page}\n${statement}\n`,
    problems: [problem],
  })),
  {
    name: 'a test of theirs is gone or a statement is',
    tests: {
      ...coverage,
      'generation-webhook': ['integration/webhooks: posts what it likes', 'integration/none: x'],
      promise: ['integration/webhooks: stops at 410'],
    },
    problems: [
      'no statement: promise',
      'no such test: generation-webhook: integration/webhooks: posts what it likes',
      'no such test: generation-webhook: integration/none: x',
    ],
  },
];

describe('The statements of docs/contract.md', () => {
  let folder: string;
  /**
   * For each page: the problems, and the line with their number. One process reads all of them, since it reads every
   * spec file.
   */
  const found: { problems: string[]; end: string }[] = [];
  let status: number | null;

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'darkroom-contract-'));
    const files = [{ statements: page, tests: coverage }, ...changed].flatMap(
      ({ statements = page, tests = coverage }, at) => {
        const [text, table] = [join(folder, `${at}.md`), join(folder, `${at}.json`)];
        writeFileSync(text, statements);
        writeFileSync(table, JSON.stringify(tests));
        return [text, table];
      },
    );
    const run = spawnSync(process.execPath, ['scripts/contract-rows.mjs', ...files], { cwd: root, encoding: 'utf8' });
    expect(run.stderr).toBe('');
    status = run.status;
    for (let lines = run.stdout.trim().split('\n'); lines.length > 0;) {
      const last = lines.findIndex((line) => / statements, \d+ problems$/.test(line));
      expect(last).toBeGreaterThanOrEqual(0);
      found.push({ problems: lines.slice(0, last), end: lines[last] });
      lines = lines.slice(last + 1);
    }
  });

  afterAll(() => rmSync(folder, { recursive: true }));

  it('each have a test', () => {
    const { problems, end } = found[0];
    expect(problems).toEqual([]);
    expect(Number(/^(\d+) statements, 0 problems$/.exec(end)?.[1])).toBe(Object.keys(coverage).length);
  });

  it.each(changed.map((each, at) => ({ ...each, at })))('are listed when $name', ({ at, problems }) => {
    expect(found[1 + at].problems).toEqual(problems);
  });

  it('make the command fail for each page with problems', () => {
    expect([found.length, status]).toEqual([1 + changed.length, changed.length]);
  });
});
