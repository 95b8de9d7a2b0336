import { lostLock } from './lost-lock';

describe(lostLock, () => {
  // The sentences of BullMQ 6.7; test/integration/queue-locks.spec.ts has it say some of them.
  it.each([
    ['could not renew lock for job a-1', 'could not renew lock'],
    ['Missing lock for job a-1. moveToFinished', 'Missing lock'],
    ['Missing key for job a-1. moveToFinished', 'Missing key'],
    ['Lock mismatch for job a-1. Cmd moveToFinished from active', 'Lock mismatch'],
    ['Job a-1 is not in the active state. moveToFinished', 'is not in the active state'],
    ['job stalled more than allowable limit', 'job stalled more than'],
    ['connect ECONNREFUSED 127.0.0.1:5432', undefined],
  ])('tells that a worker lost a lock: %s', (message, words) => {
    expect(lostLock(new Error(message))).toBe(words);
  });
});
