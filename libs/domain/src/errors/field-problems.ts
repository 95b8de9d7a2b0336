import { type FieldProblem, InvalidError, UnprocessableError } from './domain-error';
import type { ErrorCode } from './error-table';

/** Problems that one response lists; the others are only counted. */
export const maxProblemsListed = 20;
/** Characters of a key that a pointer repeats: enough to recognise it. */
const maxKeyLength = 100;

/** The problem that names the error: the first with a code of its own, otherwise the first. */
interface Primary {
  problem: FieldProblem;
  code: FieldCode | undefined;
}

/** A code that says more than "invalid". */
type FieldCode = ErrorCode<'invalid'>;

/** The problems of a request. However many there are, the response stays short and collecting them is quick. */
export class FieldProblems {
  private readonly listed: FieldProblem[] = [];
  private total = 0;
  private primary: Primary | undefined;

  get isFull(): boolean {
    return this.listed.length >= maxProblemsListed;
  }

  /** @param key of the invalid field inside the object at `parent`; undefined when `parent` itself is invalid. */
  add(parent: string, key: string | number | undefined, message: string, code?: FieldCode): void {
    this.total++;
    if (this.isFull && (!code || this.primary?.code)) return;
    this.note({ pointer: key === undefined ? parent : pointerTo(parent, key), message }, code);
  }

  addParameter(parameter: string, message: string): void {
    this.total++;
    if (!this.isFull) this.note({ parameter: parameter.slice(0, maxKeyLength), message });
  }

  /** The first twenty, and the number of the others. */
  list(): FieldProblem[] {
    const more = this.total - this.listed.length;
    return more === 0 ? this.listed : [...this.listed, { message: `and ${more} more` }];
  }

  get code(): FieldCode | undefined {
    return this.primary?.code;
  }

  /** The primary problem, and how many there are, as a sentence. */
  sentence(): string {
    const { pointer, parameter, message }: FieldProblem = this.primary?.problem ?? { message: 'is not valid' };
    const place = pointer ? `"${pointer}"` : 'The body';
    const one = `${parameter === undefined ? place : `The query parameter "${parameter}"`} ${message}`;
    return this.total > 1 ? `${one} (one of ${this.total} problems).` : `${one}.`;
  }

  /** @throws InvalidError with all problems, if there are any */
  throwIfAny(): void {
    if (this.total > 0) throw new InvalidError(this.code ?? 'ValidationFailed', this.sentence(), this.list());
  }

  /** @throws UnprocessableError with all problems, if there are any */
  refuseIfAny(code: ErrorCode<'unprocessable'>): void {
    if (this.total > 0) throw new UnprocessableError(code, this.sentence(), this.list());
  }

  private note(problem: FieldProblem, code?: FieldCode): void {
    if (!this.isFull) this.listed.push(problem);
    if (!this.primary || (code && !this.primary.code)) this.primary = { problem, code };
  }
}

/** What an error says of one place in a body: its sentence and its list. */
export const problemAt = (pointer: string, message: string) =>
  [`"${pointer}" ${message}.`, [{ pointer, message }]] as const;

/** The error for one place in a body. */
export const invalidAt = (pointer: string, message: string): InvalidError =>
  new InvalidError('ValidationFailed', ...problemAt(pointer, message));

/** The error for one query parameter. */
export function invalidParameter(parameter: string, message: string): InvalidError {
  const problems = new FieldProblems();
  problems.addParameter(parameter, message);
  return new InvalidError('ValidationFailed', problems.sentence(), problems.list());
}

/** RFC 6901 pointer to a key of the object at `parent`. A long key is cut and ends in an ellipsis. */
export function pointerTo(parent: string, key: string | number): string {
  if (typeof key === 'number') return `${parent}/${key}`;
  const shown = key.length > maxKeyLength ? `${key.slice(0, maxKeyLength).toWellFormed()}…` : key;
  return `${parent}/${shown.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}
