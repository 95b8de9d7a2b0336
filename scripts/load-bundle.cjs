const { existsSync, readFileSync, renameSync, writeFileSync } = require('node:fs');
const { dirname, join } = require('node:path');
const { Script } = require('node:vm');

const folder = __dirname;
const start = '(function (exports, require, module, __filename, __dirname) { ';

/** The bundles that this process has loaded, by name. */
const scripts = new Map();
const codeOf = (name) => join(folder, `${name}.code`);
const cacheOf = (name) => join(folder, `${name}.cache`);

/**
 * Loads a bundle without compiling it: V8 takes what it compiled before from a file. It rejects the file, and compiles,
 * if it is of another version. Node's own `module.enableCompileCache` needs Node 22.
 */
exports.loadBundle = function loadBundle(name, module, require) {
  const script = new Script(`${start}${readFileSync(codeOf(name), 'utf8')}\n})`, {
    filename: module.filename,
    columnOffset: -start.length,
    cachedData: existsSync(cacheOf(name)) ? readFileSync(cacheOf(name)) : undefined,
  });
  scripts.set(name, script);
  script
    .runInThisContext()
    .call(module.exports, module.exports, require, module, module.filename, dirname(module.filename));
};

/** Names of the loaded bundles whose cache V8 did not take. */
exports.compiledAnew = function compiledAnew() {
  return [...scripts].flatMap(([name, { cachedDataRejected }]) => (cachedDataRejected === false ? [] : [name]));
};

/** Writes what V8 has compiled of the loaded bundles, including the functions that were called. */
exports.writeCaches = function writeCaches() {
  for (const [name, script] of scripts) {
    const temporary = `${cacheOf(name)}.${process.pid}.part`;
    writeFileSync(temporary, script.createCachedData());
    renameSync(temporary, cacheOf(name));
  }
};
