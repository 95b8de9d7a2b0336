/** If the object has `close`, the hook's counterpart calls it. */
type Start<T> = () => Promise<T & { close?: () => Promise<void> }>;

type Hook = (work: () => Promise<void>) => void;

/** One object for all tests of the suite. */
export const ofSuite = <T extends object>(start: Start<T>): T => held(start, beforeAll, afterAll);

/** An object of its own for each test. */
export const ofTest = <T extends object>(start: Start<T>): T => held(start, beforeEach, afterEach);

/** The newest last. */
const open: { close?: () => Promise<void> }[] = [];

function held<T extends object>(start: Start<T>, before: Hook, after: Hook): T {
  const object = {};
  before(async () => void open.push(Object.assign(object, await start())));
  // Jest runs hooks in the order of their definition, and newer objects may use this one.
  after(async () => {
    while (open.includes(object)) await open.pop()!.close?.();
  });
  return object as T;
}
