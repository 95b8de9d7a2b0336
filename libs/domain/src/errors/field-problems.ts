import type { FieldProblem } from './domain-error';

/** Problems that one answer tells; the rest are only counted. */
const mostTold = 20;
/** Characters of a key that a pointer repeats: enough to know it by. */
const keyLength = 100;

/** What is wrong with a request. However much that is, the answer stays short and gathering it takes no time to speak of. */
export class FieldProblems {
  readonly #told: FieldProblem[] = [];
  #count = 0;

  get count(): number {
    return this.#count;
  }

  /** @param key of the field at fault inside the object at `parent`; undefined where `parent` itself is. */
  add(parent: string, key: string | number | undefined, message: string): void {
    this.#count++;
    if (this.#told.length < mostTold)
      this.#told.push({ pointer: key === undefined ? parent : pointerTo(parent, key), message });
  }

  /** The first twenty, and how many more there are. */
  list(): FieldProblem[] {
    const more = this.#count - this.#told.length;
    return more === 0 ? this.#told : [...this.#told, { pointer: '', message: `and ${more} more` }];
  }

  /** The first, and how many more there are, as a sentence. */
  sentence(): string {
    const [{ pointer, message }] = this.#told;
    const more = this.#count > 1 ? `, and ${this.#count - 1} more` : '';
    return `${pointer === '' ? 'The body' : `"${pointer}"`} ${message}${more}.`;
  }
}

/** RFC 6901 pointer to a key of what `parent` points to. A key too long to be repeated ends in an ellipsis. */
export function pointerTo(parent: string, key: string | number): string {
  if (typeof key === 'number') return `${parent}/${key}`;
  const shown = key.length > keyLength ? `${key.slice(0, keyLength).toWellFormed()}…` : key;
  return `${parent}/${shown.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}
