import {
  failuresToOpen,
  type GateEntry,
  hostConcurrency,
  ownerConcurrency,
  type PlannedAttempt,
  type ReceiverAnswer,
  ReceiverGate,
} from './receiver-gate';

const place = (admission: GateEntry): ((answer: ReceiverAnswer) => void) => {
  if (!('leave' in admission)) throw new Error(`It was sent away for ${admission.waitMs} ms.`);
  return admission.leave;
};
const to = (host: string, ownerId = 'owner'): PlannedAttempt => ({ host, ownerId });
const waitOf = (admission: GateEntry): number | undefined => ('waitMs' in admission ? admission.waitMs : undefined);

describe(ReceiverGate.name, () => {
  // The clock stands still unless a test sets it.
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  const fail = (gate: ReceiverGate, times: number, host = 'dead'): void => {
    for (let i = 0; i < times; i++) place(gate.enter(to(host)))('failed');
  };

  it('gives a host a few places and others theirs', () => {
    const gate = new ReceiverGate();
    const leaves = Array.from({ length: hostConcurrency }, () => place(gate.enter(to('slow'))));
    expect(waitOf(gate.enter(to('slow')))).toBeGreaterThan(0);
    expect(waitOf(gate.enter(to('other')))).toBeUndefined();
    leaves[0]('answered');
    expect(waitOf(gate.enter(to('slow')))).toBeUndefined();
  });

  it('lets no caller take the places of another at one host, and leaves the host alone only for those that it fails', () => {
    const gate = new ReceiverGate();
    for (let i = 0; i < hostConcurrency; i++) place(gate.enter(to('shared')));
    expect(waitOf(gate.enter(to('shared')))).toBeGreaterThan(0);
    expect(waitOf(gate.enter(to('shared', 'another owner')))).toBeUndefined();

    fail(gate, failuresToOpen);
    expect(waitOf(gate.enter(to('dead')))).toBeGreaterThan(0);
    expect(waitOf(gate.enter(to('dead', 'another owner')))).toBeUndefined();
  });

  it('gives a caller so many places that others have some left, whatever hosts it names', () => {
    const gate = new ReceiverGate();
    const leaves = Array.from({ length: ownerConcurrency }, (_, i) => place(gate.enter(to(`slow ${i}`))));
    expect(waitOf(gate.enter(to('one more')))).toBeGreaterThan(0);
    expect(waitOf(gate.enter(to('one more', 'another owner')))).toBeUndefined();
    leaves[0]('answered');
    expect(waitOf(gate.enter(to('one more')))).toBeUndefined();
  });

  it('lets those that it sends away come back one after the other, and not later than in half a minute', () => {
    const gate = new ReceiverGate();
    for (let i = 0; i < hostConcurrency; i++) gate.enter(to('slow'), 0);
    const waits = Array.from({ length: 1000 }, () => waitOf(gate.enter(to('slow'), 0)) ?? Number.NaN);
    expect(waits).toEqual([...waits].sort((a, b) => a - b));
    expect(new Set(waits.slice(0, 100)).size).toBe(100);
    expect(waits.at(-1)).toBe(30_000);
  });

  it('leaves a host alone that failed again and again, longer each time', () => {
    const gate = new ReceiverGate();
    fail(gate, failuresToOpen - 1);
    expect(waitOf(gate.enter(to('other')))).toBeUndefined();
    fail(gate, 1);
    const first = waitOf(gate.enter(to('dead'))) ?? Number.NaN;
    expect(first).toBeGreaterThan(9_000);
    const later = Date.now() + first + 1;
    place(gate.enter(to('dead'), later))('failed');
    expect(waitOf(gate.enter(to('dead'), later))).toBeGreaterThan(19_000);
  });

  it('lets a single try find out whether the host is back', () => {
    const gate = new ReceiverGate();
    fail(gate, failuresToOpen);
    const later = Date.now() + 11_000;
    const leave = place(gate.enter(to('dead'), later));
    expect(waitOf(gate.enter(to('dead'), later))).toBeGreaterThan(0);
    leave('answered');
    expect(waitOf(gate.enter(to('dead'), later))).toBeUndefined();
  });

  it('counts failures in a row only', () => {
    const gate = new ReceiverGate();
    fail(gate, failuresToOpen - 1);
    place(gate.enter(to('dead')))('answered');
    fail(gate, failuresToOpen - 1);
    expect(waitOf(gate.enter(to('dead')))).toBeUndefined();
  });

  it('learns nothing of a host that nobody got to ask', () => {
    const gate = new ReceiverGate();
    for (let i = 0; i < 2 * failuresToOpen; i++) place(gate.enter(to('unknown')))('not asked');
    expect(waitOf(gate.enter(to('unknown')))).toBeUndefined();

    fail(gate, failuresToOpen);
    const later = Date.now() + 11_000;
    place(gate.enter(to('dead'), later))('not asked');
    const probe = place(gate.enter(to('dead'), later));
    expect(waitOf(gate.enter(to('dead'), later))).toBeGreaterThan(0);
    probe('failed');
    expect(waitOf(gate.enter(to('dead'), later))).toBeGreaterThan(19_000);
  });

  it('tries a host that is left alone when a person asks for it', () => {
    const gate = new ReceiverGate();
    fail(gate, failuresToOpen);
    expect(waitOf(gate.enter({ ...to('dead'), isRedelivery: true }))).toBeUndefined();
  });
});
