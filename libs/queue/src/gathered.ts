import { AsyncResource } from 'node:async_hooks';

interface Pending<Input, Output> {
  input: Input;
  resolve: (output: Output) => void;
  reject: (error: unknown) => void;
}

/** Longer than any statement is waited for: what takes so long is answered by nobody. */
const giveUpMs = 40_000;

/** Named like the driver's own, for it says the same: the database does not answer. */
class NoAnswerError extends Error {
  override readonly name = 'NoAnswerError';
  readonly code = 'ETIMEDOUT';

  constructor() {
    super('The database has not answered in time.');
  }
}

/**
 * Turns questions that are asked at the same time into one. The first is put at once; what is asked while it is under way gathers and is
 * put together after it. So every answer is as fresh as if it had been asked for alone, and the number of statements does not grow
 * with the number of those who ask. Not for a question inside a transaction. Where no answer comes, all
 * who wait are told, and the next question is put anew.
 */
export class Gathered<Input, Output> {
  private waiting: Pending<Input, Output>[] = [];
  private isAsking = false;
  /** Whoever asks first asks for others, too: never inside a transaction, or with the log fields, of its own request. */
  private readonly context = new AsyncResource('Gathered');

  /**
   * @param ask answers as many as it is asked, in their order.
   * @param most that are asked for together.
   */
  constructor(
    private readonly ask: (inputs: readonly Input[]) => Promise<readonly Output[]>,
    private readonly most = 100,
    private readonly patienceMs = giveUpMs,
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
      const asked = this.waiting.splice(0, this.most);
      try {
        const outputs = await this.inTime(this.ask(asked.map(({ input }) => input)));
        asked.forEach(({ resolve }, index) => resolve(outputs[index]));
      } catch (error) {
        const others = error instanceof NoAnswerError ? this.waiting.splice(0) : [];
        for (const { reject } of [...asked, ...others]) reject(error);
      }
    }
    this.isAsking = false;
  }

  private inTime<T>(answer: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new NoAnswerError()), this.patienceMs);
      answer.then(resolve, reject).finally(() => clearTimeout(timer));
    });
  }
}
