import { EventEmitter } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { OpenConnections } from './open-connections';

/** A connection whose other side reads only what the test says. */
class FakeSocket extends EventEmitter {
  readonly closed = false;
  bytesWritten = 1_000_000;
  writableLength = 1_000_000;
  isDestroyed = false;

  take(bytes: number): void {
    this.writableLength -= bytes;
  }

  destroy(): void {
    this.isDestroyed = true;
    this.emit('close');
  }
}

describe(OpenConnections.name, () => {
  const stalledMs = 30_000;

  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  /** A connection with an unread answer of a megabyte. */
  function reading(connections: OpenConnections): FakeSocket {
    const socket = new FakeSocket();
    connections.oneAtATime(
      { socket } as unknown as IncomingMessage,
      new EventEmitter() as ServerResponse,
      () => undefined,
    );
    return socket;
  }

  it('cuts off a reader who takes less than 64 KiB in 30 s, however often', () => {
    const connections = new OpenConnections(new EventEmitter() as Server, 100, stalledMs);
    const [trickling, steady] = [reading(connections), reading(connections)];
    for (let second = 0; second < 60; second += 5) {
      trickling.take(2_000);
      steady.take(20_000);
      jest.advanceTimersByTime(5_000);
    }
    expect([trickling.isDestroyed, steady.isDestroyed]).toEqual([true, false]);
  });

  it('keeps a connection open whose reader has taken everything that was sent', () => {
    const connections = new OpenConnections(new EventEmitter() as Server, 100, stalledMs);
    const stream = reading(connections);
    stream.take(1_000_000);
    jest.advanceTimersByTime(10 * stalledMs);
    expect(stream.isDestroyed).toBe(false);
  });
});
