/** The shortest silence between two steps that is worth a word. */
const shortestMs = 5_000;
/** Steps take longer while other pictures are drawn beside this one. */
const factor = 3;

interface Heard {
  at: number;
  longestMs: number;
}

/**
 * Notices when no more is heard of a picture that is being drawn, which is how a page sees that its worker has died.
 */
export class Silence {
  private readonly heard = new Map<string, Heard>();

  /** A step has come. @param now milliseconds of a clock that never goes back */
  step(id: string, now: number): void {
    const { at, longestMs } = this.heard.get(id) ?? { at: now, longestMs: 0 };
    this.heard.set(id, { at: now, longestMs: Math.max(longestMs, now - at) });
  }

  /** It is silent for a reason that is known, such as a connection that was away. */
  excuse(id: string, now: number): void {
    const known = this.heard.get(id);
    if (known) this.heard.set(id, { ...known, at: now });
  }

  forget(id: string): void {
    this.heard.delete(id);
  }

  /** Drawings of which no step has come for much longer than ever before. */
  silent(now: number): string[] {
    return [...this.heard].flatMap(([id, { at, longestMs }]) =>
      now - at > Math.max(shortestMs, factor * longestMs) ? [id] : [],
    );
  }
}
