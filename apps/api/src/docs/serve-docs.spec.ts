import { EventEmitter } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Request, Response } from 'express';
import { boundReaders } from './serve-docs';

/** Like a response of Node, it emits `close` a turn of the event loop later. */
class FakeResponse extends EventEmitter {
  isDestroyed = false;

  destroy(): void {
    this.isDestroyed = true;
    setImmediate(() => this.emit('close'));
  }
}

describe(boundReaders, () => {
  it('keeps to the limit when many begin before the first has told of its end', async () => {
    const bound = boundReaders(5);
    const begin = (): FakeResponse => {
      const response = new FakeResponse();
      void bound({} as Request, response as unknown as Response, jest.fn());
      return response;
    };
    const responses = Array.from({ length: 60 }, begin);
    const areOpen = (): boolean[] => responses.map(({ isDestroyed }) => !isDestroyed);
    expect(areOpen()).toEqual(responses.map((_, place) => place >= 55));
    await nextTurn();
    responses.push(begin());
    expect(areOpen()).toEqual(responses.map((_, place) => place >= 56));
  });

  it('ends the first response when one more than the limit begins, and counts only those that are open', () => {
    const bound = boundReaders(2);
    const next = jest.fn();
    const begin = (): FakeResponse => {
      const response = new FakeResponse();
      void bound({} as Request, response as unknown as Response, next);
      return response;
    };
    const [first, second] = [begin(), begin()];
    second.emit('close');
    const third = begin();
    expect(first.isDestroyed).toBe(false);
    const fourth = begin();
    expect([first, third, fourth].map(({ isDestroyed }) => isDestroyed)).toEqual([true, false, false]);
    expect(next).toHaveBeenCalledTimes(4);
  });
});
