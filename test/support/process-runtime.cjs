const { createRequire, isBuiltin } = require('node:module');
const { compileFunction } = require('node:vm');
const { default: Runtime } = require('jest-runtime');

const isPackage = (name) => !/^(\.|\/|@app\/|@jest\/)/.test(name) && !isBuiltin(name);

/**
 * Jest loads all that a spec file imports again for each file. Here this holds for the sources of this repository; a
 * package is loaded once a process, as in the service: it takes a second and more to load those of an api.
 */
module.exports = class ProcessRuntime extends Runtime {
  constructor(...args) {
    super(...args);
    const { executor } = this;
    // Without the `parsingContext` of the original: in the globals of the process, see `process-environment.cjs`.
    executor.compile = (source, filename) => compileFunction(source, executor.injectedModuleParameters, { filename });
  }

  requireModuleOrMock(from, name) {
    return isPackage(name) ? createRequire(from)(name) : super.requireModuleOrMock(from, name);
  }
};
