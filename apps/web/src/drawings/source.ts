import { client } from '../session/session';
import { type Drawing, drawingOfGeneration, drawingOfPrompt, type Status } from './drawing';

/** Drawings of one page of a list. */
export const pageSize = 24;

/** One list of a key's records, newest first: its Generations, or the Prompts of one Fine-Tune. */
export class Source {
  /** Read and not yet shown. */
  private readonly ahead: Drawing[] = [];
  private readonly known = new Set<string>();
  private pages?: AsyncGenerator<Drawing[], void, undefined>;
  private isComplete = false;

  constructor(
    readonly finetuneId: string | undefined,
    private readonly status: Status | undefined,
  ) {}

  get isAtEnd(): boolean {
    return this.isComplete && this.ahead.length === 0;
  }

  /** Undefined at the end, or while it has to be read first. */
  get next(): Drawing | undefined {
    return this.ahead[0];
  }

  get mustRead(): boolean {
    return this.ahead.length === 0 && !this.isComplete;
  }

  take(): Drawing | undefined {
    return this.ahead.shift();
  }

  /** Reads on to something new, or to the end. */
  async readOn(): Promise<void> {
    while (this.mustRead) {
      const page = await this.nextPage();
      this.isComplete = page === undefined;
      const fresh = (page ?? []).filter(({ id }) => !this.known.has(id));
      for (const { id } of fresh) this.known.add(id);
      this.ahead.push(...fresh);
    }
  }

  async newest(): Promise<Drawing[]> {
    return (await this.open().next()).value ?? [];
  }

  private async nextPage(): Promise<Drawing[] | undefined> {
    this.pages ??= this.open();
    try {
      return (await this.pages.next()).value ?? undefined;
    } catch (error) {
      // A generator that has thrown is finished. The next starts at the beginning, even if the cursor was deleted.
      this.pages = undefined;
      throw error;
    }
  }

  private async *open(): AsyncGenerator<Drawing[], void, undefined> {
    const { finetuneId, status } = this;
    const query = { limit: pageSize, ...(status !== undefined && { status }) };
    if (finetuneId === undefined) {
      for await (const page of client().generations.pages(query)) yield page.map(drawingOfGeneration);
      return;
    }
    for await (const page of client().prompts.pages(finetuneId, query))
      // Only the list's filter tells that a Prompt is being drawn or was canceled.
      yield page.map((prompt) => ({
        ...drawingOfPrompt(prompt, finetuneId),
        ...(status !== undefined && { status }),
      }));
  }
}
