/** An object that is made in a hook; one that has `close` is closed in the hook's counterpart. */
type Start<T> = () => Promise<T & { close?: () => Promise<void> }>;

type Hook = (work: () => Promise<void>) => void;

/** An object that all tests of the suite share, made before the first of them. */
export const ofSuite = <T extends object>(start: Start<T>): T => held(start, beforeAll, afterAll);

/** An object of which each test of the suite gets its own. */
export const ofTest = <T extends object>(start: Start<T>): T => held(start, beforeEach, afterEach);

/** All that are open, the newest last. */
const open: { close?: () => Promise<void> }[] = [];

function held<T extends object>(start: Start<T>, before: Hook, after: Hook): T {
  const object = {};
  before(async () => void open.push(Object.assign(object, await start())));
  // Jest runs hooks in the order in which they are defined, and the newer ones may use this one.
  after(async () => {
    while (open.includes(object)) await open.pop()!.close?.();
  });
  return object as T;
}
