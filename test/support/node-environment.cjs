const { TestEnvironment } = require('jest-environment-node');

/**
 * Jest runs tests in a realm of its own, where `instanceof Float32Array` of a value made by a native add-on is false.
 * Sharing the outer realm's buffers and typed arrays makes onnxruntime-node and sharp accept and return the usual types.
 */
module.exports = class NodeEnvironment extends TestEnvironment {
  async setup() {
    await super.setup();
    for (const name of [
      'ArrayBuffer',
      'SharedArrayBuffer',
      'DataView',
      'Uint8Array',
      'Uint8ClampedArray',
      'Uint16Array',
      'Uint32Array',
      'Int8Array',
      'Int16Array',
      'Int32Array',
      'Float16Array',
      'Float32Array',
      'Float64Array',
      'BigInt64Array',
      'BigUint64Array',
    ])
      this.global[name] = globalThis[name];
  }
};
