const { ModernFakeTimers } = require('@jest/fake-timers');
const { ModuleMocker } = require('jest-mock');

/** The names and symbols under which Jest puts its own into the global object. */
const jestNames = ['describe', 'fdescribe', 'xdescribe', 'it', 'fit', 'xit', 'test', 'xtest', 'expect'];
const jestHooks = ['beforeAll', 'beforeEach', 'afterAll', 'afterEach'];
const jestSymbol = /jest|^(EVENT_HANDLERS|LOG_ERRORS_BEFORE_RETRY|RETRY_.*|TEST_TIMEOUT_SYMBOL|WAIT_BEFORE_RETRY)$/i;
/** Where libraries keep what the decorators of our classes say; each spec file loads classes of its own. */
const decorators = ['typeormMetadataArgsStorage', 'classValidatorMetadataStorage'];
const namesOfFile = new Set([...jestNames, ...jestHooks, ...decorators]);

/**
 * Runs a spec file in the realm of its process, as the service runs, where Jest would make one for each file: then
 * libraries can be shared between files (`shared-libraries-runtime.cjs`), and `instanceof` says the same of what they,
 * Node and native add-ons make as of what we make. What a file changes about its process is undone at the file's end.
 */
module.exports = class NodeEnvironment {
  constructor({ projectConfig }) {
    this.global = globalThis;
    this.moduleMocker = new ModuleMocker(globalThis);
    this.fakeTimersModern = new ModernFakeTimers({ config: projectConfig, global: globalThis });
    this.fakeTimers = this.fakeTimersModern;
    this.before = {
      console: globalThis.console,
      env: { ...process.env },
      exit: process.exit,
      exitCode: process.exitCode,
      listeners: listenersOfProcess(),
      stackTraceLimit: Error.stackTraceLimit,
    };
  }

  async setup() {}

  async teardown() {
    const { console, env, exit, exitCode, listeners, stackTraceLimit } = this.before;
    this.fakeTimersModern.dispose();
    this.moduleMocker.restoreAllMocks();
    for (const [name, added] of listenersOfProcess())
      for (const listener of added)
        if (!listeners.get(name)?.includes(listener)) process.removeListener(name, listener);
    for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name];
    Object.assign(process.env, env);
    Object.assign(process, { exit, exitCode });
    Object.assign(globalThis, { console });
    Error.stackTraceLimit = stackTraceLimit;
    // Some cannot be deleted, which Jest itself overwrites.
    for (const key of Reflect.ownKeys(globalThis)) if (isOfFile(key)) Reflect.deleteProperty(globalThis, key);
  }

  exportConditions() {
    return ['node', 'node-addons'];
  }

  getVmContext() {
    return globalThis;
  }
};

function listenersOfProcess() {
  return new Map(process.eventNames().map((name) => [name, process.rawListeners(name)]));
}

function isOfFile(key) {
  return typeof key === 'symbol' ? jestSymbol.test(key.description ?? '') : namesOfFile.has(key);
}
