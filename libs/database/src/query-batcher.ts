import { AsyncResource } from 'node:async_hooks';

interface Pending<Input, Output> {
  input: Input;
  resolve: (output: Output) => void;
  reject: (error: unknown) => void;
}

/** Longer than any statement may take: after that nobody waits for the answer. */
const giveUpMs = 40_000;

/** Has the same code as the driver's own time-out, because it means the same: the database does not answer. */
class NoAnswerError extends Error {
  override readonly name = 'NoAnswerError';
  readonly code = 'ETIMEDOUT';

  constructor() {
    super('The database has not answered in time.');
  }
}

/**
 * Combines questions that are asked at the same time into one. The first is sent at once; questions that arrive
 * meanwhile are sent together after it. So every answer is as fresh as if it had been asked for alone, and the number
 * of statements does not grow with the number of callers. Not for a question inside a transaction. If no answer comes,
 * all waiting callers get an error; later questions are sent anew.
 */
export class QueryBatcher<Input, Output> {
  private waiting: Pending<Input, Output>[] = [];
  private isAsking = false;
  /**
   * The first caller asks for the others too, so it must not ask inside a transaction or with the log
   * fields of its own request.
   */
  private readonly context = new AsyncResource('QueryBatcher');

  /**
   * @param ask returns an answer for each question, in order.
   * @param maxBatch questions in one call.
   */
  constructor(
    private readonly ask: (inputs: readonly Input[]) => Promise<readonly Output[]>,
    private readonly maxBatch = 100,
    private readonly timeoutMs = giveUpMs,
  ) {}

  get(input: Input): Promise<Output> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ input, resolve, reject });
      if (!this.isAsking) void this.context.runInAsyncScope(() => this.askAll());
    });
  }

  private async askAll(): Promise<void> {
    this.isAsking = true;
    while (this.waiting.length > 0) {
      const asked = this.waiting.splice(0, this.maxBatch);
      try {
        const outputs = await this.withTimeout(this.ask(asked.map(({ input }) => input)));
        asked.forEach(({ resolve }, index) => resolve(outputs[index]));
      } catch (error) {
        const others = error instanceof NoAnswerError ? this.waiting.splice(0) : [];
        for (const { reject } of [...asked, ...others]) reject(error);
      }
    }
    this.isAsking = false;
  }

  private withTimeout<T>(answer: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new NoAnswerError()), this.timeoutMs);
      answer.then(resolve, reject).finally(() => clearTimeout(timer));
    });
  }
}
