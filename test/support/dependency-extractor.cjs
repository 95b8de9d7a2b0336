const { dirname, join, relative } = require('node:path');

const root = join(__dirname, '..', '..');
/** `'a', 'b.js'` or `'a/b.js'`. */
const literals = `((?:'[^']+', )*'[^']+\\.\\w+')`;
const beside = new RegExp(`__dirname, ${literals}`, 'g');
const compiled = new RegExp(`'dist', ${literals}`, 'g');
/** The launcher and the test support start the api and the worker by name. */
const byName = /\b\w+, 'src', 'main\.js'/;
const apps = ['api', 'inference'].map((name) => join(root, 'apps', name, 'src', 'main.js'));

/**
 * Returns a file's dependencies for Jest, so that `--changed` and `--watch` select the specs of a change: its imports,
 * the files that it starts as processes and threads, and files beside it that it reads.
 */
module.exports = {
  extract(code, file, defaultExtract) {
    const pathsOf = (pattern, start) => [...code.matchAll(pattern)].map(([, list]) => join(start, ...partsOf(list)));
    const paths = [...pathsOf(beside, dirname(file)), ...pathsOf(compiled, root), ...(byName.test(code) ? apps : [])];
    return new Set([
      ...defaultExtract(code, file),
      ...paths.map((path) => `./${relative(dirname(file), source(path))}`),
    ]);
  },
  getCacheKey: () => '2',
};

function partsOf(list) {
  return list.split(', ').map((literal) => literal.slice(1, -1));
}

/** The running file is in `dist`; a change is in its source. */
function source(path) {
  return path.replace(join(root, 'dist'), root).replace(/\.js$/, '.ts');
}
