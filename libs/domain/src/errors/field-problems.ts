import { type FieldProblem, InvalidError, UnprocessableError } from './domain-error';
import type { ErrorCode } from './error-table';

/** Problems that one response lists; the others are only counted. */
export const maxProblemsListed = 20;
/** Characters of a key that a pointer repeats: enough to recognise it. */
const maxKeyLength = 100;

/** Of several problems, the one that names the error: the first with a code of its own, otherwise the first. */
interface Primary {
  problem: FieldProblem;
  code: FieldCode | undefined;
}

/** A code that says more than that a field is invalid. */
type FieldCode = ErrorCode<'invalid'>;

/**
 * The problems of a request. However many there are, the response stays short and collecting them takes little time.
 */
export class FieldProblems {
  private readonly listed: FieldProblem[] = [];
  private total = 0;
  private primary: Primary | undefined;

  /** Whether further problems are only counted. */
  get isFull(): boolean {
    return this.listed.length >= maxProblemsListed;
  }

  /**
   * @param key of the invalid field inside the object at `parent`; undefined when `parent` itself is invalid.
   * @param code of this problem, if it has one of its own.
   */
  add(parent: string, key: string | number | undefined, message: string, code?: FieldCode): void {
    this.total++;
    if (this.isFull && (!code || this.primary?.code)) return;
    this.note({ pointer: key === undefined ? parent : pointerTo(parent, key), message }, code);
  }

  /** @param parameter of the query that is wrong */
  addParameter(parameter: string, message: string): void {
    this.total++;
    if (!this.isFull) this.note({ parameter: parameter.slice(0, maxKeyLength), message });
  }

  /** The first twenty, and the number of the others. */
  list(): FieldProblem[] {
    const more = this.total - this.listed.length;
    return more === 0 ? this.listed : [...this.listed, { message: `and ${more} more` }];
  }

  /** The code of the problem that `sentence` names; undefined if it has none of its own. */
  get code(): FieldCode | undefined {
    return this.primary?.code;
  }

  /** One problem, and how many there are, as a sentence. */
  sentence(): string {
    const { pointer, parameter, message }: FieldProblem = this.primary?.problem ?? { message: 'is not valid' };
    const place = pointer ? `"${pointer}"` : 'The body';
    const one = `${parameter === undefined ? place : `The query parameter "${parameter}"`} ${message}`;
    return this.total > 1 ? `${one} (one of ${this.total} problems).` : `${one}.`;
  }

  /** @throws InvalidError with all of this, if there is any problem */
  throwIfAny(): void {
    if (this.total > 0) throw new InvalidError(this.code ?? 'ValidationFailed', this.sentence(), this.list());
  }

  /** @throws UnprocessableError with all of this and its own code, if there is any problem */
  refuseIfAny(code: ErrorCode<'unprocessable'>): void {
    if (this.total > 0) throw new UnprocessableError(code, this.sentence(), this.list());
  }

  private note(problem: FieldProblem, code?: FieldCode): void {
    if (!this.isFull) this.listed.push(problem);
    if (!this.primary || (code && !this.primary.code)) this.primary = { problem, code };
  }
}

/** RFC 6901 pointer to a key of the object at `parent`. A long key is cut and ends in an ellipsis. */
export function pointerTo(parent: string, key: string | number): string {
  if (typeof key === 'number') return `${parent}/${key}`;
  const shown = key.length > maxKeyLength ? `${key.slice(0, maxKeyLength).toWellFormed()}…` : key;
  return `${parent}/${shown.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}
