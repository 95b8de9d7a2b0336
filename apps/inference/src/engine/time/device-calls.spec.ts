import { DeviceCalls } from './device-calls';
import type { DeviceTime, WorkClock } from './work-clock';

describe(DeviceCalls.name, () => {
  let now: number;
  /** What the second thread has said, and the engine’s thread has not heard. */
  let said: (() => void)[];
  let calls: DeviceCalls;

  beforeEach(() => {
    now = 1_000;
    said = [];
    calls = new DeviceCalls(
      () => now,
      async () => said.splice(0).forEach((hear) => hear()),
    );
  });

  /** Begins a piece of work. @returns a function that ends it, and says what it took */
  function begin(clock: WorkClock, work: () => void = () => undefined, cancel?: SharedArrayBuffer) {
    let end = (): void => undefined;
    let time: DeviceTime | undefined;
    const ended = new Promise<void>((_, reject) => (end = () => reject(new Error('it ends by failing'))));
    const done = clock.during(
      () => {
        work();
        return ended;
      },
      (took) => (time = took),
      cancel,
    );
    return async (): Promise<DeviceTime | undefined> => {
      end();
      await expect(done).rejects.toThrow('it ends by failing');
      return time;
    };
  }

  const unet = () => begin(calls.clocks.unet);

  /** A piece of the second thread that asks for one call. */
  function decode() {
    let call!: ReturnType<DeviceCalls['ask']>;
    const end = begin(calls.clocks.others, () => (call = calls.ask()));
    return { ...call, end };
  }

  it('counts all time of what is done alone', async () => {
    const end = unet();
    now += 30;
    expect(await end()).toEqual({ ms: 30, passedMs: 30, blockedMs: 30, isShared: false });
    now += 100;
    const { began, ended, end: endPiece } = decode();
    now += 5;
    began(now);
    now += 7;
    ended(now);
    expect(await endPiece()).toEqual({ ms: 7, passedMs: 7, blockedMs: 0, isShared: false });
  });

  it('gives each of two calls half of the time in which both are made, as the second thread tells it afterwards', async () => {
    const [first, second] = [decode(), decode()];
    const end = unet();
    said.push(() => first.began(1_010));
    said.push(() => first.ended(1_030));
    said.push(() => second.began(1_030));
    now = 1_100;
    expect(await end()).toEqual({ ms: 100 - 20 / 2 - 70 / 2, passedMs: 100, blockedMs: 100, isShared: true });
    expect(await first.end()).toEqual({ ms: 10, passedMs: 20, blockedMs: 0, isShared: true });
    now = 1_150;
    const next = unet();
    now = 1_160;
    said.push(() => second.ended(1_155));
    expect(await next()).toEqual({ ms: 10 - 5 / 2, passedMs: 10, blockedMs: 10, isShared: true });
    expect(await second.end()).toEqual({ ms: 125 - 70 / 2 - 5 / 2, passedMs: 125, blockedMs: 0, isShared: true });
  });

  it('divides all time in which there are calls, however many overlap one after the other', async () => {
    let total = 0;
    for (let i = 0; i < 50; i++) {
      const piece = decode();
      const begunAt = now;
      piece.began(begunAt);
      for (let call = 0; call < 3; call++) {
        const end = unet();
        now += 10;
        total += (await end())!.ms;
      }
      piece.ended(now);
      total += (await piece.end())!.ms;
    }
    expect(total).toBe(50 * 3 * 10);
  });

  it('counts the calls of a piece together, and not those of another piece or of none', async () => {
    const asked: ReturnType<DeviceCalls['ask']>[] = [];
    const end = begin(calls.clocks.others, () => asked.push(calls.ask(), calls.ask()));
    const other = decode();
    const ofNone = calls.ask();
    for (const call of [...asked, other, ofNone]) {
      call.began(now);
      now += 10;
      call.ended(now);
    }
    expect((await end())?.ms).toBe(20);
    expect((await other.end())?.ms).toBe(10);
  });

  it('charges nothing for a call that was not made, and tells the second thread how it may be canceled', async () => {
    const cancel = new SharedArrayBuffer(4);
    let call: ReturnType<DeviceCalls['ask']> | undefined;
    const end = begin(calls.clocks.others, () => (call = calls.ask()), cancel);
    const beside = unet();
    expect(call?.cancel).toBe(cancel);
    now += 10;
    call?.ended(now);
    expect(await end()).toEqual({ ms: 0, passedMs: 0, blockedMs: 0, isShared: false });
    expect(await beside()).toEqual({ ms: 10, passedMs: 10, blockedMs: 10, isShared: false });
    expect(calls.ask().cancel).toBeUndefined();
  });
});
