const { workerData } = require('node:worker_threads');
const { breakLaneOnce, decodesPicture, startEngineBesideWith } = require('./faulty-lanes.cjs');

// The second thread dies when it decodes the first picture.
if (workerData.device) startEngineBesideWith(module.filename);
else
  breakLaneOnce(
    'dying-side-thread',
    () => {
      throw new Error('The second thread dies on purpose.');
    },
    decodesPicture,
  );
