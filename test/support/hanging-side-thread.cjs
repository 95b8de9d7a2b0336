const { workerData } = require('node:worker_threads');
const { breakLaneOnce, decodesPicture, hangUntil, startEngineBesideWith } = require('./faulty-lanes.cjs');

// The second thread hangs when it decodes the first picture, until a file says that this was seen.
if (workerData.device) startEngineBesideWith(module.filename);
else breakLaneOnce('hanging-side-thread', (mark) => hangUntil(`${mark}-ends`), decodesPicture);
