const { createRequire, isBuiltin } = require('node:module');
const { compileFunction } = require('node:vm');
const { default: Runtime } = require('jest-runtime');

const isPackage = (name) => !/^(\.|\/|@app\/|@jest\/)/.test(name) && !isBuiltin(name);

/**
 * Jest reloads all imports for each spec file. Here only the sources of this repository are reloaded; packages are
 * loaded once a process, as in the service: those of an api take more than a second.
 */
module.exports = class ProcessRuntime extends Runtime {
  constructor(...args) {
    super(...args);
    const { executor } = this;
    // Without the original's `parsingContext`: in the process's globals, see `process-environment.cjs`.
    executor.compile = (source, filename) => compileFunction(source, executor.injectedModuleParameters, { filename });
  }

  requireModuleOrMock(from, name) {
    return isPackage(name) ? createRequire(from)(name) : super.requireModuleOrMock(from, name);
  }
};
