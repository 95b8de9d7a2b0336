const { getPriority } = require('node:os');
const { join } = require('node:path');
const { setTimeout: delay } = require('node:timers/promises');
const { serveWork } = require(join(process.cwd(), 'dist', 'libs', 'process', 'src', 'serve-work.js'));

const kept = [];
/** One word per job. */
const deeds = {
  echo: (order) => ({ ...order, pid: process.pid, priority: getPriority() }),
  environment: () => process.env,
  throw: () => {
    throw new Error('That does not work.');
  },
  sleep: () => delay(600_000),
  // It blocks the event loop.
  spin: () => {
    process.stderr.write('It spins.');
    for (;;);
  },
  buffers: () => {
    for (;;) kept.push(new Uint8Array(2 ** 24).fill(1));
  },
  objects: () => {
    for (;;) kept.push({ at: kept.length });
  },
  exit: () => process.exit(3),
};

serveWork((order) => deeds[order.deed](order));
