import { readdirSync, readFileSync } from 'node:fs';
import { STATUS_CODES } from 'node:http';
import { join } from 'node:path';
import { errorTable } from '@app/domain';

const root = join(__dirname, '../../../..');
const text = ['apps/api/src', 'libs/domain/src', 'libs/diffusion/src/finetune', 'libs/tasks/src']
  .flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      // The documents name codes in examples, and give none.
      .filter((file) => /(?<!spec)\.ts$/.test(file) && !file.endsWith('error-table.ts') && !file.startsWith('docs/'))
      .map((file) => readFileSync(join(root, folder, file), 'utf8')),
  )
  .join('\n');
const rows = Object.entries(errorTable);

describe('errorTable', () => {
  it('has each status once, with the title that HTTP gives it', () => {
    const statuses = rows.map(([, { status }]) => status);
    expect(new Set(statuses).size).toBe(statuses.length);
    for (const [, { status, title }] of rows) expect(title).toBe(STATUS_CODES[status]);
  });

  it('has a class for each kind', () => {
    const classes = [...text.matchAll(/class \w+ extends (?:Domain|Http)Error<'(\w+)'>/g)].map(([, kind]) => kind);
    expect([...new Set(classes)].sort()).toEqual(rows.map(([kind]) => kind).sort());
  });

  it('has no code that nobody gives', () => {
    for (const [kind, { codes }] of rows) {
      // The other codes of this kind are built from resource names.
      const given = Object.keys(codes).filter((code) => kind !== 'notFound' || code === 'RouteNotFound');
      expect(given.filter((code) => !text.includes(`'${code}'`))).toEqual([]);
    }
  });
});
