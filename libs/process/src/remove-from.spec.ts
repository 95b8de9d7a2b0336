import { removeFrom } from './remove-from';

it('takes out the item that is there, and nothing for one that is not', () => {
  const list = ['a', 'b', 'c'];
  expect([removeFrom(list, 'b'), list]).toEqual([true, ['a', 'c']]);
  expect([removeFrom(list, 'b'), list]).toEqual([false, ['a', 'c']]);
});
