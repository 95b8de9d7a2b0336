import { FieldProblems, InvalidError } from '@app/domain';

/** What is wrong with the query of a request: all of it is told at once. */
export class QueryProblems {
  private readonly problems = new FieldProblems();

  add(parameter: string, message: string): void {
    this.problems.addParameter(parameter, message);
  }

  /** Runs a check, and takes the problems of the query that it throws. */
  addThoseOf(check: () => unknown): void {
    try {
      check();
    } catch (error) {
      if (!(error instanceof InvalidError)) throw error;
      for (const { parameter = '', message } of error.fields ?? []) this.add(parameter, message);
    }
  }

  /** @throws InvalidError naming every parameter that is wrong */
  throwIfAny(): void {
    const { problems } = this;
    if (problems.count > 0) throw new InvalidError('ValidationFailed', problems.sentence(), problems.list());
  }
}

/** A query parameter is wrong. */
export function badParameter(parameter: string, message: string): InvalidError {
  const problems = new FieldProblems();
  problems.addParameter(parameter, message);
  return new InvalidError('ValidationFailed', problems.sentence(), problems.list());
}
