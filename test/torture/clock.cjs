/**
 * Preloaded into a process: its clock is wrong by TORTURE_CLOCK_MS milliseconds, and by TORTURE_CLOCK_JUMP_MS more
 * after a SIGUSR2.
 */
const milliseconds = (name) => Number(process.env[name] ?? 0);
let offMs = milliseconds('TORTURE_CLOCK_MS');
process.once('SIGUSR2', () => (offMs += milliseconds('TORTURE_CLOCK_JUMP_MS')));
const RealDate = Date;

globalThis.Date = class Date extends RealDate {
  constructor(...values) {
    if (values.length === 0) super(RealDate.now() + offMs);
    else super(...values);
  }

  static now() {
    return RealDate.now() + offMs;
  }
};
