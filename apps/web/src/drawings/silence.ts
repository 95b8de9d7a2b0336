/** Shorter silences between two steps are not reported. */
const shortestMs = 5_000;
/** Steps take longer while other pictures are drawn at the same time. */
const factor = 3;

interface Heard {
  at: number;
  longestMs: number;
}

/** Notices drawings of which nothing more is heard: their worker may have died. */
export class Silence {
  private readonly heard = new Map<string, Heard>();

  /** @param now milliseconds of a clock that never goes back */
  step(id: string, now: number): void {
    const { at, longestMs } = this.heard.get(id) ?? { at: now, longestMs: 0 };
    this.heard.set(id, { at: now, longestMs: Math.max(longestMs, now - at) });
  }

  /** For a silence with a known reason, such as a lost connection. */
  excuse(id: string, now: number): void {
    const known = this.heard.get(id);
    if (known) this.heard.set(id, { ...known, at: now });
  }

  forget(id: string): void {
    this.heard.delete(id);
  }

  /** Drawings whose next step is overdue by far. */
  silent(now: number): string[] {
    return [...this.heard].flatMap(([id, { at, longestMs }]) =>
      now - at > Math.max(shortestMs, factor * longestMs) ? [id] : [],
    );
  }
}
