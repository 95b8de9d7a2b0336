const width = 8;

/** Does something with each element, for a few of them at a time. The first error ends it. */
export async function inParallel<T>(
  elements: AsyncIterable<T> | Iterable<T>,
  work: (element: T) => Promise<void>,
): Promise<void> {
  async function* each(): AsyncGenerator<T> {
    yield* elements;
  }
  const queue = each();
  const worker = async (): Promise<void> => {
    for await (const element of { [Symbol.asyncIterator]: () => ({ next: () => queue.next() }) }) await work(element);
  };
  await Promise.all(Array.from({ length: width }, worker));
}
