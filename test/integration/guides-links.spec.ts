import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

const root = resolve(__dirname, '..', '..');
const pages = [
  ...readdirSync(root).filter((name) => name.endsWith('.md')),
  ...readdirSync(join(root, 'docs')).flatMap((name) => (name.endsWith('.md') ? [`docs/${name}`] : [])),
  'docker/kubernetes/README.md',
];
const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: Record<string, string> };

describe.each(pages)('%s', (page) => {
  const text = readFileSync(join(root, page), 'utf8');

  it('links to files that exist', () => {
    const links = [...text.matchAll(/\]\(([^)#\s]+)/g)].map(([, link]) => link);
    const files = links.filter((link) => !/^(?:\w+:|\/)/.test(link));
    expect(files.filter((link) => !existsSync(join(root, dirname(page), link)))).toEqual([]);
  });

  it('names only scripts and programs that exist', () => {
    const named = [...text.matchAll(/\bnpm run ([a-z][\w:-]*)/g)].map(([, name]) => name);
    expect(named.filter((name) => !(name in scripts))).toEqual([]);
    const programs = [...text.matchAll(/\bnode (dist\/\S+\.js|scripts\/[\w-]+\.mjs)/g)].map(([, file]) => file);
    const sources = programs.map((file) => file.replace(/^dist\/(.*)\.js$/, '$1.ts'));
    expect(sources.filter((file) => !existsSync(join(root, file)))).toEqual([]);
    const units = [...text.matchAll(/docker\/systemd\/(darkroom[\w-]*\.(?:service|timer))/g)].map(([, unit]) => unit);
    expect(units.filter((unit) => !existsSync(join(root, 'docker', 'systemd', unit)))).toEqual([]);
  });
});
