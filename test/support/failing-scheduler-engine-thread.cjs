const { join } = require('node:path');

/**
 * Starts a real engine thread in which the tenth step of all multistep solvers runs out of memory when the solver has
 * noted the prediction.
 */
const { DpmSolverMultistepScheduler } = require(
  join(__dirname, '../../dist/libs/diffusion/src/schedulers/dpm-solver-multistep-scheduler.js'),
);
const { step } = DpmSolverMultistepScheduler.prototype;
let steps = 0;
DpmSolverMultistepScheduler.prototype.step = function failOnce(...values) {
  const moved = step.apply(this, values);
  if (++steps === 10) throw new RangeError('Array buffer allocation failed');
  return moved;
};
require(join(__dirname, '../../dist/apps/inference/src/engine/engine-thread.js'));
