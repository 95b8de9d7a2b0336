const { rmSync } = require('node:fs');

module.exports = async function globalTeardown() {
  const { postgres, folder } = globalThis.testPostgres;
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
};
