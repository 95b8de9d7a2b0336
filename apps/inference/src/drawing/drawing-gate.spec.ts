import { DrawingGate } from './drawing-gate';
import { DrawingAbortedError } from '../engine/engine-errors';

describe(DrawingGate.name, () => {
  let gate: DrawingGate;
  let inside: string[];
  const never = new AbortController().signal;

  beforeEach(() => {
    gate = new DrawingGate();
    inside = [];
  });

  /** Begins to enter; resolves to what leaves again. */
  async function enter(name: string, alone = false, signal = never): Promise<() => void> {
    const leave = await gate.enter(alone, signal);
    inside.push(name);
    return () => {
      inside.splice(inside.indexOf(name), 1);
      leave();
    };
  }
  const settled = () => new Promise((resolve) => setImmediate(resolve));

  it('lets tasks in side by side', async () => {
    await Promise.all([enter('a'), enter('b')]);
    expect(inside).toEqual(['a', 'b']);
    expect(gate.isClosed).toBe(false);
  });

  it('lets one in alone when all others have left, and nobody else before it has left', async () => {
    const others = await Promise.all([enter('a'), enter('b')]);
    const suspect = enter('suspect', true);
    const late = enter('late');
    expect(gate.isClosed).toBe(true);
    others[0]();
    await settled();
    expect(inside).toEqual(['b']);
    others[1]();
    const leave = await suspect;
    await settled();
    expect(inside).toEqual(['suspect']);
    expect(gate.isClosed).toBe(true);
    leave();
    await late;
    expect(inside).toEqual(['late']);
    expect(gate.isClosed).toBe(false);
  });

  it('lets those that are to be alone in one by one, in the order in which they come', async () => {
    const leave = await enter('a', true);
    const entering = [enter('b', true), enter('c'), enter('d', true)];
    leave();
    for (const [index, name] of ['b', 'c', 'd'].entries()) {
      const leaveNext = await entering[index];
      expect(inside).toEqual([name]);
      leaveNext();
    }
  });

  it('is not held up by one that gives up', async () => {
    const leave = await enter('a');
    const stop = new AbortController();
    const suspect = enter('suspect', true, stop.signal);
    const late = enter('late');
    stop.abort();
    await expect(suspect).rejects.toThrow(DrawingAbortedError);
    await late;
    expect(inside).toEqual(['a', 'late']);
    await expect(gate.enter(false, AbortSignal.abort())).rejects.toThrow(DrawingAbortedError);
    leave();
    expect(gate.isClosed).toBe(false);
  });

  it('counts one that leaves twice once', async () => {
    const [leave] = [await gate.enter(false, never), await enter('b')];
    leave();
    leave();
    void enter('suspect', true);
    await settled();
    expect(inside).toEqual(['b']);
  });
});
