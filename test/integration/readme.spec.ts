import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { dependentVariables, s3Variables, variables } from '../../libs/config/src/variables';

const readme = readFileSync(join(__dirname, '..', '..', 'docs', 'running.md'), 'utf8');
const rows = readme
  .split('\n')
  .filter((line) => /^\| `[A-Z]/.test(line))
  .map((line) => line.split('|').map((cell) => cell.trim().replaceAll('`', '')));
const all: readonly (readonly unknown[])[] = [...Object.values(variables), ...Object.values(dependentVariables)];
/** Defaults that are told in words. */
const inWords: Readonly<Record<string, string>> = {
  INFERENCE_THREADS: 'all cores',
  INFERENCE_HEALTH_PORT: 'a free one',
  CORS_ORIGINS: 'none',
};

describe('the table of variables in docs/running.md', () => {
  it('has every variable, except the one that only tests set', () => {
    const listed = rows.flatMap(([, names]) => names.split(', '));
    const [s3, others] = [listed.filter((name) => name === 'S3_*'), listed.filter((name) => name !== 'S3_*')];
    expect(s3).toHaveLength(1);
    expect(Object.values(s3Variables).every(([name]) => name.startsWith('S3_'))).toBe(true);
    expect(others.sort()).toEqual(
      all
        .map(([name]) => String(name))
        .filter((name) => name !== 'DARKROOM_CRASH_AT')
        .sort(),
    );
  });

  it.each(all.flatMap(([name, , value]) => (value === undefined ? [] : [[String(name), value] as const])))(
    'has the default of %s',
    (name, value) => {
      const [, names, defaults] = rows.find(([, listed]) => listed.split(', ').includes(name))!;
      const at = names.split(', ').indexOf(name);
      const plain = typeof value === 'boolean' ? (value ? 'on' : 'off') : JSON.stringify(value).replaceAll('"', '');
      expect(defaults.split(', ')[at]).toBe(inWords[name] ?? plain);
    },
  );
});
