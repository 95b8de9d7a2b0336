/** A state of the finder: what has been read ends with its phrase's beginning, and with no longer one. */
interface State {
  next: Map<string, State>;
  /** The state of the longest other beginning that what has been read ends with. */
  shorter: State | undefined;
  /** Place of the first phrase that ends here. */
  found: number;
}

const newState = (): State => ({ next: new Map(), shorter: undefined, found: Infinity });

/**
 * Finds which of many phrases a text has, in one pass over the text however many they are. Source: Aho and Corasick,
 * "Efficient string matching", 1975.
 */
export class PhraseFinder {
  private readonly root = newState();

  /** @param phrases none of them empty */
  constructor(phrases: readonly string[]) {
    for (const [place, phrase] of phrases.entries()) {
      let state = this.root;
      for (const character of phrase) {
        const next = state.next.get(character) ?? newState();
        state.next.set(character, next);
        state = next;
      }
      state.found = Math.min(state.found, place);
    }
    const waiting = [this.root];
    // It grows while it is gone through: shorter beginnings come first.
    for (const state of waiting)
      for (const [character, next] of state.next) {
        next.shorter = state === this.root ? this.root : this.after(state.shorter!, character);
        next.found = Math.min(next.found, next.shorter.found);
        waiting.push(next);
      }
  }

  /** The place of the first of the phrases that a text has; undefined if it has none. */
  find(text: string): number | undefined {
    let state = this.root;
    let found = Infinity;
    for (const character of text) {
      state = this.after(state, character);
      found = Math.min(found, state.found);
    }
    return found === Infinity ? undefined : found;
  }

  private after(state: State, character: string): State {
    let from: State | undefined = state;
    while (from) {
      const next = from.next.get(character);
      if (next) return next;
      from = from.shorter;
    }
    return this.root;
  }
}
