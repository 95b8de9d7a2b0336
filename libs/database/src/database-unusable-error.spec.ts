import { DatabaseUnreachableError } from './database-unusable-error';

describe(DatabaseUnreachableError.name, () => {
  it.each([
    [
      'the name of its host is not known',
      'ENOTFOUND',
      /^The database does not answer \(ENOTFOUND\): check DATABASE_URL/,
    ],
    ['it has no database of that name', '3D000', /^The database refuses the connection \(what it says\)/],
    ['it says something else', '53300', /^The database cannot be used: what it says\.$/],
  ])('says in a sentence that %s, and that a restart may help', (_, code, said) => {
    const error = new DatabaseUnreachableError(Object.assign(new Error('what it says'), { code }));
    expect(error.message).toMatch(said);
    expect(error.exitCode).toBe(1);
  });
});
