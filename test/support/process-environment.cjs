const { TestEnvironment } = require('jest-environment-node');

/**
 * Jest gives each spec file globals of its own, like another window's; here it gets the process's, so that packages and
 * native code, which are loaded once, know its arrays and errors.
 */
module.exports = class ProcessEnvironment extends TestEnvironment {
  constructor(...args) {
    super(...args);
    const { moduleMocker, fakeTimersModern } = this;
    this.global = globalThis;
    this.moduleMocker = new moduleMocker.constructor(globalThis);
    this.fakeTimersModern = new fakeTimersModern.constructor({ config: args[0].projectConfig, global: globalThis });
    this.before = { console, exit: process.exit, names: new Set(Object.getOwnPropertyNames(globalThis)) };
  }

  /** Takes back what Jest has replaced, and removes what libraries keep of the file's classes. */
  async teardown() {
    await super.teardown();
    globalThis.console = this.before.console;
    process.exit = this.before.exit;
    for (const name of Object.getOwnPropertyNames(globalThis))
      if (!this.before.names.has(name)) delete globalThis[name];
  }
};
