/** The service cannot work with this database as it is; the message is one sentence for the operator. */
export class DatabaseUnusableError extends Error {
  constructor(message: string) {
    super(message);
    this.name = new.target.name;
  }
}

/** The database lacks tables that this version needs. */
export class NotMigratedError extends DatabaseUnusableError {
  constructor(missing: string) {
    super(`The database is not migrated (${missing}): run "npm run migrate" first.`);
  }
}
