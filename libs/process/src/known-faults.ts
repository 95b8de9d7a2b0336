/** Then what was at fault is tried again, because it may have been a disk or a network. */
const triedAgainMs = 600_000;
/** Far more than anyone installs, or asks for in that time; the oldest is forgotten first. */
const most = 100;

/** Faults that were found within the last minutes, by keys that files in another state do not have. */
export class KnownFaults<T> {
  private readonly found = new Map<string, { fault: T; at: number }>();

  /** @param now milliseconds of a clock that never goes back */
  constructor(private readonly now: () => number = () => performance.now()) {}

  note(key: string, fault: T): void {
    this.found.delete(key);
    this.found.set(key, { fault, at: this.now() });
    if (this.found.size > most) this.found.delete(this.found.keys().next().value!);
  }

  of(key: string): T | undefined {
    this.forget();
    return this.found.get(key)?.fault;
  }

  list(): T[] {
    this.forget();
    return [...this.found.values()].map(({ fault }) => fault);
  }

  private forget(): void {
    for (const [key, { at }] of this.found) if (this.now() - at >= triedAgainMs) this.found.delete(key);
  }
}
