import type { FieldProblem } from './domain-error';

/** Problems that one response lists; the others are only counted. */
const maxListed = 20;
/** Characters of a key that a pointer repeats: enough to recognise it. */
const maxKeyLength = 100;

/** The problems of a request. However many there are, the response stays short and collecting them takes little time. */
export class FieldProblems {
  readonly #told: FieldProblem[] = [];
  #count = 0;

  get count(): number {
    return this.#count;
  }

  /** @param key of the invalid field inside the object at `parent`; undefined when `parent` itself is invalid. */
  add(parent: string, key: string | number | undefined, message: string): void {
    this.#count++;
    if (this.#told.length < maxListed)
      this.#told.push({ pointer: key === undefined ? parent : pointerTo(parent, key), message });
  }

  /** The first twenty, and the number of the others. */
  list(): FieldProblem[] {
    const more = this.#count - this.#told.length;
    return more === 0 ? this.#told : [...this.#told, { pointer: '', message: `and ${more} more` }];
  }

  /** The first, and the number of the others, as a sentence. */
  sentence(): string {
    const [{ pointer, message }] = this.#told;
    const more = this.#count > 1 ? `, and ${this.#count - 1} more` : '';
    return `${pointer === '' ? 'The body' : `"${pointer}"`} ${message}${more}.`;
  }
}

/** RFC 6901 pointer to a key of the object at `parent`. A long key is cut and ends in an ellipsis. */
export function pointerTo(parent: string, key: string | number): string {
  if (typeof key === 'number') return `${parent}/${key}`;
  const shown = key.length > maxKeyLength ? `${key.slice(0, maxKeyLength).toWellFormed()}…` : key;
  return `${parent}/${shown.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}
