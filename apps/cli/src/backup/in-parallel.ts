const width = 8;

/**
 * Does something with each element, for a few of them at a time. After an error no further one is begun.
 * @throws the first error, when nothing is being done any more
 */
export async function inParallel<T>(
  elements: AsyncIterable<T> | Iterable<T>,
  work: (element: T) => Promise<void>,
): Promise<void> {
  async function* each(): AsyncGenerator<T> {
    yield* elements;
  }
  const queue = each();
  let isOver = false;
  const worker = async (): Promise<void> => {
    try {
      for await (const element of { [Symbol.asyncIterator]: () => ({ next: () => queue.next() }) }) {
        if (isOver) return;
        await work(element);
      }
    } catch (error) {
      isOver = true;
      throw error;
    }
  };
  const ended = await Promise.allSettled(Array.from({ length: width }, worker));
  const failed = ended.find((result) => result.status === 'rejected');
  if (failed) throw failed.reason;
}
