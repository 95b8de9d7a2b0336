import { client } from '../session/session';
import type { Drawing, Status } from './drawing';
import { drawingOfGeneration, drawingOfPrompt } from './drawing';

/** Drawings of one page of a list. */
export const pageSize = 24;

/** One of the lists that together are everything of a key, newest first: its Generations, or the Prompts of one Fine-Tune. */
export class Source {
  /** Read and not yet shown. */
  private readonly ahead: Drawing[] = [];
  /** Ids in the order of the list; the last is where the next page begins. */
  private readonly read: string[] = [];
  private isComplete = false;

  constructor(
    readonly finetuneId: string | undefined,
    private readonly status: Status | undefined,
  ) {}

  get isAtEnd(): boolean {
    return this.isComplete && this.ahead.length === 0;
  }

  /** The next drawing; undefined at the end, or while it has to be read first. */
  get next(): Drawing | undefined {
    return this.ahead[0];
  }

  get mustRead(): boolean {
    return this.ahead.length === 0 && !this.isComplete;
  }

  take(): Drawing | undefined {
    return this.ahead.shift();
  }

  async readOn(): Promise<void> {
    const page = await this.page(this.read.at(-1));
    this.isComplete = page.length < pageSize;
    this.read.push(...page.map(({ id }) => id));
    this.ahead.push(...page);
  }

  /** A list is continued after one of its elements, which must not be one that was deleted since. */
  drop(id: string): void {
    const index = this.read.indexOf(id);
    if (index >= 0) this.read.splice(index, 1);
  }

  /** The newest, as they are now. */
  newest(): Promise<Drawing[]> {
    return this.page();
  }

  private async page(after?: string): Promise<Drawing[]> {
    const query = {
      limit: pageSize,
      ...(after !== undefined && { after }),
      ...(this.status !== undefined && { status: this.status }),
    };
    const { finetuneId } = this;
    if (finetuneId === undefined) return (await client().generations.list(query)).map(drawingOfGeneration);
    const prompts = await client().prompts.list(finetuneId, query);
    // Only the list's own filter tells that a Prompt is being drawn or was canceled.
    return prompts.map((prompt) => ({
      ...drawingOfPrompt(prompt, finetuneId),
      ...(this.status !== undefined && { status: this.status }),
    }));
  }
}
