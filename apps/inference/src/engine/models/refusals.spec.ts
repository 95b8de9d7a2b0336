import { cures, ModelFolderError, OutOfMemoryError } from '@app/diffusion';
import { Refusals } from './refusals';
import { UpscalerError } from '../engine-errors';

describe(Refusals.name, () => {
  it.each([
    new ModelFolderError('/models/a', 'is cut short', cures.installAgain),
    new UpscalerError('it takes int64.'),
  ])('knows for ten minutes that a file could not be used: %s', (error) => {
    let now = 0;
    const refusals = new Refusals(() => now);
    refusals.note('a', error);
    now = 599_999;
    expect(() => refusals.throwIfKnown('a')).toThrow(error);
    expect(() => refusals.throwIfKnown('b')).not.toThrow();
    now = 600_000;
    expect(() => refusals.throwIfKnown('a')).not.toThrow();
  });

  it('does not remember what may go well the next time', () => {
    const refusals = new Refusals();
    for (const error of [new OutOfMemoryError('out of memory'), new Error('CUDA failure 2')]) refusals.note('a', error);
    expect(() => refusals.throwIfKnown('a')).not.toThrow();
  });

  it('forgets the oldest of more than a hundred', () => {
    const refusals = new Refusals();
    for (let i = 0; i <= 100; i++) refusals.note(`${i}`, new UpscalerError('it is odd.'));
    expect(() => refusals.throwIfKnown('0')).not.toThrow();
    expect(() => refusals.throwIfKnown('1')).toThrow('it is odd.');
  });
});
