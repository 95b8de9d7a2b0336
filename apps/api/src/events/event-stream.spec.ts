import { EventEmitter } from 'node:events';
import type { Writable } from 'node:stream';
import { EventStream, stepFrames } from './event-stream';

/** A response whose reader takes nothing once it is behind. */
class FakeResponse extends EventEmitter {
  written: string[] = [];
  closed = false;
  writableEnded = false;
  writableNeedDrain = false;
  writableLength = 0;

  write(text: string): boolean {
    this.written.push(text);
    if (this.writableNeedDrain) this.writableLength += text.length;
    return !this.writableNeedDrain;
  }

  destroy(): void {
    this.closed = true;
  }

  end(): void {
    this.writableEnded = true;
  }
}

describe(EventStream.name, () => {
  let response: FakeResponse;
  let stream: EventStream;

  beforeEach(() => {
    response = new FakeResponse();
    stream = new EventStream(response as unknown as Writable, undefined);
  });

  const step = (step: number) => stepFrames({ id: 'task', attempt: 1, step, total: 50, preview: 'A'.repeat(7_500) });

  it('sends previews to a reader that keeps up, and steps alone to one that does not', () => {
    stream.step(step(1));
    response.writableNeedDrain = true;
    stream.step(step(2));
    expect(response.written).toEqual([step(1).whole, step(2).brief]);
    expect(step(2).brief).toContain('"preview":null');
  });

  it('cuts off a reader that is too far behind, and writes nothing more', () => {
    response.writableNeedDrain = true;
    for (let position = 0; position < 20; position++) stream.queued(position, 'x'.repeat(10_000));
    expect(response.closed).toBe(true);
    expect(response.writableLength).toBeLessThan(150_000);
  });

  it('sends a step or a position once, and no step after a later one', () => {
    for (const number of [2, 2, 1, 3]) stream.step(step(number));
    for (const position of [4, 4, 3]) stream.queued(position, `${position}`);
    expect(response.written).toEqual([step(2).whole, step(3).whole, '4', '3']);
  });

  it('sends the same position again to one who is queued again', () => {
    stream.queued(0, 'next');
    stream.step(step(1));
    stream.queued(0, 'next again');
    expect(response.written).toEqual(['next', step(1).whole, 'next again']);
  });

  it('says once that an attempt has begun, and not to a client that knows a step of it', () => {
    for (const attempt of [1, 1]) stream.started(attempt, { step: 40, total: 50 });
    stream.step(step(41));
    stream.started(1, { step: 41, total: 50 });
    stream.queued(0, 'next');
    stream.started(2, { step: 0, total: 50 });
    expect(response.written).toEqual([
      'id: 1-0\nevent: started\ndata: {"step":40,"total":50}\n\n',
      step(41).whole,
      'next',
      'id: 2-0\nevent: started\ndata: {"step":0,"total":50}\n\n',
    ]);
    const back = new EventStream(response as unknown as Writable, '2-17');
    expect([back.knows(2), back.knows(3)]).toEqual([true, false]);
  });

  it('keeps a quiet connection open, and does not add to what a reader has not taken', () => {
    stream.beat();
    response.writableNeedDrain = true;
    stream.beat();
    expect(response.written).toHaveLength(1);
  });
});
