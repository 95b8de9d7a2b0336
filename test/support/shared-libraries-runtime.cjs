const asyncHooks = require('node:async_hooks');
const { createRequire, isBuiltin } = require('node:module');
const { dirname, isAbsolute } = require('node:path');
const { compileFunction } = require('node:vm');
const { default: Runtime } = require('jest-runtime');

/** The name of a file, or of one of our libraries, which `moduleNameMapper` takes for a file. */
const ours = /^(\.|@app\/)/;

/**
 * Loads what lies in `node_modules` once per process, as Node loads it, and our own files anew for each spec file.
 * Jest's own runtime loads everything anew, and NestJS and TypeORM are most of what a spec file loads. The price: no
 * spec may mock a library or leave it changed.
 */
module.exports = class SharedLibrariesRuntime extends Runtime {
  constructor(...args) {
    super(...args);
    const { executor } = this;
    /**
     * What this spec file has made of `AsyncLocalStorage`: every promise costs time for each in use, until the process
     * ends.
     */
    const storages = (this.storages = []);
    this.asyncHooks = {
      ...asyncHooks,
      AsyncLocalStorage: class extends asyncHooks.AsyncLocalStorage {
        constructor(...args) {
          super(...args);
          storages.push(this);
        }
      },
    };
    // Into the realm of the process, see `node-environment.cjs`.
    executor.compile = (source, filename) => compileOnce(source, filename, executor.injectedModuleParameters);
  }

  teardown() {
    super.teardown();
    for (const storage of this.storages) storage.disable();
  }

  /** Jest would patch the `process` of its own realm; ours is the real one. */
  installGetBuiltinModule() {}

  requireModule(from, name, options, isRequireActual) {
    if (name === 'node:async_hooks') return this.asyncHooks;
    if (options?.isInternalModule || !isLibrary(name)) return super.requireModule(from, name, options, isRequireActual);
    return requireIn(dirname(from))(name);
  }
};

const compiled = new Map();

/**
 * The function of a module's code. Each call of it makes the module anew, so it serves every spec file that loads the
 * module.
 */
function compileOnce(source, filename, parameters) {
  const before = compiled.get(filename);
  if (before?.source === source && before.parameters === parameters.join()) return before.made;
  const made = compileFunction(source, parameters, { filename });
  compiled.set(filename, { source, parameters: parameters.join(), made });
  return made;
}

function isLibrary(name) {
  return name !== undefined && !ours.test(name) && !isAbsolute(name) && !isBuiltin(name);
}

const requires = new Map();

function requireIn(folder) {
  let found = requires.get(folder);
  if (!found) requires.set(folder, (found = createRequire(`${folder}/`)));
  return found;
}
