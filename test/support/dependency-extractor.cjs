const { dirname, join, relative } = require('node:path');

const root = join(__dirname, '..', '..');
/** `'a', 'b.js'` or `'a/b.js'`. */
const literals = `((?:'[^']+', )*'[^']+\\.\\w+')`;
const beside = new RegExp(`__dirname, ${literals}`, 'g');
const compiled = new RegExp(`'dist', ${literals}`, 'g');
/** The launcher and the support of tests start the api and the worker by their names. */
const byName = /\b\w+, 'src', 'main\.js'/;
const apps = ['api', 'inference'].map((name) => join(root, 'apps', name, 'src', 'main.js'));

/**
 * Tells Jest what a file depends on, so that `--changed` and `--watch` select the specs of a change: besides what it imports, these are the
 * files that it starts as processes and threads, and those that it reads beside itself.
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

/** What runs is in `dist`; what is changed is the source. */
function source(path) {
  return path.replace(join(root, 'dist'), root).replace(/\.js$/, '.ts');
}
