/** Loaded into a process before all else: its clock is wrong by TORTURE_CLOCK_MS milliseconds. */
const offMs = Number(process.env.TORTURE_CLOCK_MS);
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
