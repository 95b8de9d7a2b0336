import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

const root = resolve(__dirname, '..', '..');
const pages = [
  ...readdirSync(root).filter((name) => name.endsWith('.md')),
  ...readdirSync(join(root, 'docs')).flatMap((name) => (name.endsWith('.md') ? [`docs/${name}`] : [])),
  'docker/kubernetes/README.md',
  'bench/results/README.md',
  'models/shapes/README.md',
  'packages/client/README.md',
  'scripts/goldens/README.md',
];
const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: Record<string, string> };

/** A route with every placeholder as `{}`. */
const plain = (path: string): string => path.replace(/:\w+|<\w+>|\{\w+\}/g, '{}');
const { paths } = JSON.parse(readFileSync(join(root, 'openapi.json'), 'utf8')) as { paths: Record<string, object> };
const routes = new Set(
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${plain(path)}`),
  ),
);

/** Of the services that one comes from. */
const routesOfOthers = ['POST /v1/generation/{}/text-to-image', 'POST /v1/predictions'];

/** Anchors of a page: those of its headings, as GitHub and our own pages make them, and those that it names. */
function anchorsOf(page: string): string[] {
  const text = readFileSync(join(root, page), 'utf8').replace(/^```[^]*?^```$/gm, '');
  const headings = [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
    heading
      .replace(/\[([^\][]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
  return [...headings, ...[...text.matchAll(/<a id="([^"]+)">/g)].map(([, id]) => id)];
}

describe.each(pages)('%s', (page) => {
  const text = readFileSync(join(root, page), 'utf8');

  it('links to files that exist', () => {
    const links = [...text.matchAll(/\]\(([^)#\s]+)/g)].map(([, link]) => link);
    const files = links.filter((link) => !/^(?:\w+:|\/)/.test(link));
    expect(files.filter((link) => !existsSync(join(root, dirname(page), link)))).toEqual([]);
  });

  it('links to headings that exist', () => {
    const links = [...text.matchAll(/\]\(((?!\w+:|\/)[^)#\s]*)#([^)\s]+)\)/g)];
    const missing = links.filter(([, file, anchor]) => {
      const target = file === '' ? page : relative(root, join(root, dirname(page), file));
      return target.endsWith('.md') && !anchorsOf(target).includes(anchor);
    });
    expect(missing.map(([link]) => link)).toEqual([]);
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

  it('names only routes that exist', () => {
    const named = [...text.matchAll(/\b(GET|POST|PUT|PATCH|DELETE) (\/v1\/[\w/:<>{}-]+)/g)];
    const unknown = named.map(([, method, path]) => `${method} ${plain(path)}`).filter((route) => !routes.has(route));
    expect(unknown.sort()).toEqual(page === 'docs/coming-from.md' ? routesOfOthers : []);
  });
});
