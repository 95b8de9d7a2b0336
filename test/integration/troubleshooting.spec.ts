import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(__dirname, '..', '..');
const page = readFileSync(join(root, 'docs', 'troubleshooting.md'), 'utf8');

/** The sources of a folder, as one text. */
const sourcesOf = (folder: string): string =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.(?:ts|mjs)$/.test(file) && !file.endsWith('.spec.ts'))
    .map((file) => readFileSync(join(root, folder, file), 'utf8'))
    .join('\n');

/** What the service fills in. */
const filledIn = /…|PORT is 3000|20\.19|cuda:0|sd1\.5|HOST is/;

describe('The sentences of docs/troubleshooting.md', () => {
  const sources = ['apps', 'libs', 'scripts'].map(sourcesOf).join('\n');
  const cells = page.split('\n').flatMap((line) => (line.startsWith('| ') ? [line.split('|')[1]] : []));
  const quoted = cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, words]) => words));
  const sentences = quoted.filter((words) => words.split(' ').length > 2);

  it.each(sentences)('%s', (sentence) => {
    const parts = sentence.split(filledIn).filter((part) => part.length > 8);
    expect(parts.length).toBeGreaterThan(0);
    expect(parts.filter((part) => !sources.includes(part))).toEqual([]);
  });

  it('are many', () => expect(sentences.length).toBeGreaterThan(12));

  it('have codes that exist', () => {
    const errors = readFileSync(join(root, 'docs', 'errors.md'), 'utf8');
    const codes = quoted.filter((word) => /^[A-Z][a-z]+(?:[A-Z][a-z]+)*$/.test(word) && word !== 'CORS');
    expect(codes.filter((code) => !errors.includes(`\`${code}\` |`))).toEqual([]);
  });
});
