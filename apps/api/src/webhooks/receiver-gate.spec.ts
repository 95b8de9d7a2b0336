import type { Admission } from './receiver-gate';
import { failuresToOpen, hostConcurrency, ReceiverGate } from './receiver-gate';

const place = (admission: Admission): ((alive: boolean) => void) => {
  if (!('leave' in admission)) throw new Error(`It was sent away for ${admission.waitMs} ms.`);
  return admission.leave;
};
const waitOf = (admission: Admission): number | undefined => ('waitMs' in admission ? admission.waitMs : undefined);

describe(ReceiverGate.name, () => {
  const fail = (gate: ReceiverGate, times: number, host = 'dead'): void => {
    for (let i = 0; i < times; i++) place(gate.enter(host))(false);
  };

  it('gives a host a few places and others theirs', () => {
    const gate = new ReceiverGate();
    const leaves = Array.from({ length: hostConcurrency }, () => place(gate.enter('slow')));
    expect(waitOf(gate.enter('slow'))).toBeGreaterThan(0);
    expect(waitOf(gate.enter('other'))).toBeUndefined();
    leaves[0](true);
    expect(waitOf(gate.enter('slow'))).toBeUndefined();
  });

  it('lets those that it sends away come back one after the other, and not later than in half a minute', () => {
    const gate = new ReceiverGate();
    for (let i = 0; i < hostConcurrency; i++) gate.enter('slow', { now: 0 });
    const waits = Array.from({ length: 1000 }, () => waitOf(gate.enter('slow', { now: 0 })) ?? Number.NaN);
    expect(waits).toEqual([...waits].sort((a, b) => a - b));
    expect(new Set(waits.slice(0, 100)).size).toBe(100);
    expect(waits.at(-1)).toBe(30_000);
  });

  it('leaves a host alone that failed again and again, longer each time', () => {
    const gate = new ReceiverGate();
    fail(gate, failuresToOpen - 1);
    expect(waitOf(gate.enter('other'))).toBeUndefined();
    fail(gate, 1);
    const first = waitOf(gate.enter('dead')) ?? Number.NaN;
    expect(first).toBeGreaterThan(9_000);
    const later = Date.now() + first + 1;
    place(gate.enter('dead', { now: later }))(false);
    expect(waitOf(gate.enter('dead', { now: later }))).toBeGreaterThan(19_000);
  });

  it('lets a single try find out whether the host is back', () => {
    const gate = new ReceiverGate();
    fail(gate, failuresToOpen);
    const later = Date.now() + 11_000;
    const leave = place(gate.enter('dead', { now: later }));
    expect(waitOf(gate.enter('dead', { now: later }))).toBeGreaterThan(0);
    leave(true);
    expect(waitOf(gate.enter('dead', { now: later }))).toBeUndefined();
  });

  it('counts failures in a row only', () => {
    const gate = new ReceiverGate();
    fail(gate, failuresToOpen - 1);
    place(gate.enter('dead'))(true);
    fail(gate, failuresToOpen - 1);
    expect(waitOf(gate.enter('dead'))).toBeUndefined();
  });

  it('tries a host that is left alone when a person asks for it', () => {
    const gate = new ReceiverGate();
    fail(gate, failuresToOpen);
    expect(waitOf(gate.enter('dead', { asked: true }))).toBeUndefined();
  });
});
