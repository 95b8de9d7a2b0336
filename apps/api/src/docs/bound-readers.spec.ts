import { EventEmitter } from 'node:events';
import type { Request, Response } from 'express';
import { boundReaders } from './bound-readers';

class FakeResponse extends EventEmitter {
  isDestroyed = false;

  destroy(): void {
    this.isDestroyed = true;
    this.emit('close');
  }
}

describe(boundReaders, () => {
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
