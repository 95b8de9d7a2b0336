import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { flag, InvalidValue, type Kind } from '../../libs/config/src/kinds';
import { loadConfig } from '../../libs/config/src/load-config';
import { credentialsVariables, dependentVariables, s3Variables, variables } from '../../libs/config/src/variables';

type Fallback = string | number | boolean | readonly string[];
type Variable = readonly [name: string, kind: Kind<unknown>, fallback?: Fallback];

const page = readFileSync(join(__dirname, '..', '..', 'docs', 'running.md'), 'utf8');
const section = page.slice(page.indexOf('\n## Variables\n'));
const rows = section
  .split('\n')
  .filter((line) => line.startsWith('| `'))
  .map((line) => {
    const [, name, fallback, values] = line.split('|').map((cell) => cell.trim());
    return { name: name.replaceAll('`', ''), fallback, values };
  });
/** Set by tests alone. */
const untold = 'DARKROOM_CRASH_AT';
const known = [variables, s3Variables, credentialsVariables, dependentVariables].flatMap((table) =>
  Object.values<Variable>(table),
);

/** Defaults that depend on the machine or on another variable, with what `loadConfig` makes of it. */
const s3 = { STORAGE: 's3', S3_BUCKET: 'b', S3_ACCESS_KEY_ID: 'i', S3_SECRET_ACCESS_KEY: 's' };
const dependent: Readonly<Record<string, readonly [told: string, ...facts: [found: unknown, wanted: unknown][]]>> = {
  PUBLIC_URL: ['`http://localhost:<PORT>`', [loadConfig({ PORT: '8080' }).publicUrl, 'http://localhost:8080']],
  INFERENCE_THREADS: ['all cores'],
  CREDENTIALS_CERTIFICATE: ['with `npm start` its own, else none'],
  CREDENTIALS_KEY: ['with `npm start` its own, else none'],
  INFERENCE_MEMORY_MB: ["half of the machine's, most of a GPU's", [loadConfig({}).inferenceMemoryMb, undefined]],
  MODEL_FALLBACK: [
    'on without `DATABASE_URL`, else off',
    [loadConfig({}).modelFallback, true],
    [loadConfig({ DATABASE_URL: 'postgres://db/x' }).modelFallback, false],
  ],
  S3_FORCE_PATH_STYLE: [
    'on with `S3_ENDPOINT`, else off',
    [loadConfig({ ...s3, S3_ENDPOINT: 'http://store' }).s3?.forcePathStyle, true],
    [loadConfig(s3).s3?.forcePathStyle, false],
  ],
};

const inBackticks = (text: string): string[] => [...text.matchAll(/`([^`]+)`/g)].map(([, word]) => word);

/** A default as the page has it. */
function told(fallback: Fallback = []): string {
  if (Array.isArray(fallback) && fallback.length === 0) return 'none';
  if (typeof fallback === 'boolean') return fallback ? 'on' : 'off';
  return `\`${String(fallback)}\``;
}

/** What a kind says of a value that none of them takes, unless it takes any text. */
function refusal(kind: Kind<unknown>): string | undefined {
  const found = kind('~');
  return found instanceof InvalidValue ? found.reason : undefined;
}

describe('The table of variables in docs/running.md', () => {
  it('has each variable of the service once, and no other', () => {
    const names = known.map(([name]) => name).filter((name) => name !== untold);
    expect(rows.map(({ name }) => name).sort()).toEqual(names.sort());
  });

  const ofThePage = known.flatMap(([name, kind, fallback]) => (name === untold ? [] : [{ name, kind, fallback }]));

  it.each(ofThePage)('has the default of $name', ({ name, fallback }) => {
    const [wanted = told(fallback), ...facts] = dependent[name] ?? [];
    expect(rows.find((row) => row.name === name)?.fallback).toBe(wanted);
    for (const [found, value] of facts) expect(found).toEqual(value);
  });

  it.each(ofThePage)('has the values of $name', ({ name, kind }) => {
    const { values = '' } = rows.find((row) => row.name === name) ?? {};
    const reason = refusal(kind);
    const words = inBackticks(values);
    const given = words.map((word) => word.replace('…', 'db/x'));
    for (const value of given) expect([value, kind(value) instanceof InvalidValue]).toEqual([value, false]);
    if (kind === flag) expect(values).toBe('a switch');
    const [, least, most] = /from (\d+) to (\d+)/.exec(reason ?? '') ?? [];
    if (least) expect(values).toMatch(new RegExp(`^${least} to ${most}(?:;|$)`));
    const [, listed] = /^must be (?:one of|one or more of) ([\w, ]*\w)(?=, got| \(with)/.exec(reason ?? '') ?? [];
    if (listed) expect([...words].sort()).toEqual(listed.split(', ').sort());
    const [urls = ''] = /^must be a .*URL\.$/.exec(reason ?? '') ?? [];
    const schemes = [...urls.matchAll(/(?:https?|rediss?|postgres(?:ql)?):\/\//g)].map(([scheme]) => `${scheme}…`);
    if (schemes.length > 0) expect(words).toEqual(expect.arrayContaining(schemes));
  });

  it('has the words that turn a switch on and off', () => {
    const [, on, off] = /A switch is on with (.*?), and off with (.*?), in capitals or not/.exec(section)!;
    for (const [text, wanted] of [
      [on, true],
      [off, false],
    ] as const) {
      expect(inBackticks(text)).toHaveLength(4);
      for (const word of inBackticks(text)) expect([flag(word), flag(word.toUpperCase())]).toEqual([wanted, wanted]);
    }
  });
});
