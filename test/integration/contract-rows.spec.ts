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

describe('The statements of docs/contract.md', () => {
  let folder: string;

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'darkroom-contract-'));
  });

  afterAll(() => rmSync(folder, { recursive: true }));

  const list = (statements = page, tests: object = coverage) => {
    const files = ['page.md', 'coverage.json'].map((name) => join(folder, name));
    writeFileSync(files[0], statements);
    writeFileSync(files[1], JSON.stringify(tests));
    const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/contract-rows.mjs', ...files], {
      cwd: root,
      encoding: 'utf8',
    });
    expect(stderr).toBe('');
    const lines = stdout.trim().split('\n');
    return { status, problems: lines.slice(0, -1), end: lines.at(-1) };
  };

  it('each have a test', () => {
    const { status, problems, end } = list();
    expect([status, problems]).toEqual([0, []]);
    expect(Number(/^(\d+) statements, 0 problems$/.exec(end ?? '')?.[1])).toBe(Object.keys(coverage).length);
  });

  it.each([
    ['a list item', '- A promise.', 'no anchor: - A promise.'],
    [
      'a table row',
      '| Route | What |\n| --- | --- |\n| GET /v1/x | a promise |',
      'no anchor: | GET /v1/x | a promise |',
    ],
    ['one without tests', '- <a id="promise"></a>A promise.', 'no test: promise'],
    ['an anchor that is there', '- <a id="generation-webhook"></a>Again.', 'anchor used twice: generation-webhook'],
  ])('are listed when there is a new one: %s', (_, statement, problem) => {
    expect(list(`${page}\n${statement}\n`)).toMatchObject({ status: 1, problems: [problem] });
  });

  it('are listed when a test of theirs is gone or a statement is', () => {
    const gone = { 'generation-webhook': ['integration/webhooks: posts what it likes', 'integration/none: x'] };
    expect(list(page, { ...coverage, ...gone, promise: ['integration/webhooks: stops at 410'] })).toMatchObject({
      status: 1,
      problems: [
        'no statement: promise',
        'no such test: generation-webhook: integration/webhooks: posts what it likes',
        'no such test: generation-webhook: integration/none: x',
      ],
    });
  });
});
