const { rmSync } = require('node:fs');

/** Ends what global-setup started. */
module.exports = async function globalTeardown() {
  const { postgres, folder } = globalThis.testPostgres;
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
};
