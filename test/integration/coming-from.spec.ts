import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { schedulerNames } from '@app/domain';
import { schedulerClassNames, schedulerNameOf } from '../../libs/diffusion/src/schedulers';
import type { SchedulerJson } from '../../libs/diffusion/src/schedulers/scheduler-config';

const page = readFileSync(join(__dirname, '..', '..', 'docs', 'coming-from.md'), 'utf8');
const section = page.slice(page.indexOf('\n## Schedulers\n'));

/** The words of a cell that stand in backquotes. */
const quoted = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, word]) => word);
const rows = section
  .split('\n')
  .filter((line) => /^\| `(?!scheduler`)/.test(line))
  .map((line) => line.split('|').map(quoted))
  .map(([, [name], [className], settings]) => [name, className, settings] as const);

/** What a model's configuration has, such as `use_karras_sigmas: true`. */
function configOf(className: string, settings: readonly string[]): SchedulerJson {
  const pairs = settings.map((setting) => setting.split(': ')).map(([key, text]) => [key, text === 'true' || text]);
  return { ...(Object.fromEntries(pairs) as SchedulerJson), _class_name: className };
}

describe('The table of schedulers in docs/coming-from.md', () => {
  it('has each word that a request may have, and no others', () => {
    expect(rows.map(([name]) => name)).toEqual(schedulerNames);
  });

  it('has each class that a model may name as its own', () => {
    const classes = section.split('\n').flatMap((line) => quoted(line.split('|')[2] ?? ''));
    expect([...new Set(classes)].filter((name) => name.endsWith('Scheduler')).sort()).toEqual(
      [...schedulerClassNames].sort(),
    );
  });

  it.each(rows)('calls %s what GET /v1/models calls it: %s', (name, className, settings) => {
    expect(schedulerNameOf(configOf(className, settings))).toBe(name);
  });
});
