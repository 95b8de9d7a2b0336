const { TestEnvironment } = require('jest-environment-node');

const shared = ['Float32Array', 'Float64Array', 'Int32Array', 'BigInt64Array', 'BigUint64Array', 'Uint16Array'];

/**
 * Jest gives each spec file globals of its own. ONNX Runtime's machine code makes and checks typed arrays of the process
 * (`instanceof Float32Array`), so a spec file gets those of the process too.
 */
module.exports = class NodeEnvironment extends TestEnvironment {
  constructor(...args) {
    super(...args);
    for (const name of shared) this.global[name] = globalThis[name];
  }
};
