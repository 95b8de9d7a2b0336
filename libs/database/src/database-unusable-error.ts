import { StartError } from '@app/process';

/** The service cannot work with this database as it is; the message is one sentence for the operator. */
export class DatabaseUnusableError extends StartError {}

/** The database lacks tables that this version needs. */
export class NotMigratedError extends DatabaseUnusableError {
  constructor(missing: string) {
    super(`The database is not migrated (${missing}): run "npm run migrate" first.`);
  }
}

/** Network errors where no database is, or none yet. */
const silent = ['ECONNREFUSED', 'ECONNRESET', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'ETIMEDOUT'];
/** Also what a database answers that starts or ends. */
const passing = new Set([...silent, '57P01', '57P02', '57P03']);

/** There is no connection to the database. A restart may help, also where a name is not known yet. */
export class DatabaseUnreachableError extends DatabaseUnusableError {
  /** Whether another try may succeed without a change of the settings. */
  readonly mayPass: boolean;

  constructor(cause: unknown) {
    super(explainDatabaseError(cause) ?? `The database cannot be used: ${(cause as Error).message}.`, 1, { cause });
    this.mayPass = passing.has((cause as { code?: string }).code ?? '');
  }
}

/** What an error of the database's driver means to whoever set DATABASE_URL; undefined for any other error. */
export function explainDatabaseError(error: unknown): string | undefined {
  const { code, message } = error as Error & { code?: string };
  switch (code) {
    case '42P01':
      return 'The database has no tables yet: run "npm run migrate" first.';
    case '28P01':
      return 'The database refuses the user or the password in DATABASE_URL, or PGPASSWORD.';
    case '28000':
    case '3D000':
      return `The database refuses the connection (${message}): check DATABASE_URL.`;
    case 'DEPTH_ZERO_SELF_SIGNED_CERT':
    case 'SELF_SIGNED_CERT_IN_CHAIN':
    case 'UNABLE_TO_VERIFY_LEAF_SIGNATURE':
    case 'UNABLE_TO_GET_ISSUER_CERT':
    case 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY':
      return `The certificate of the database is not one of a public authority (${code}): add sslrootcert=<file of its authority, or of itself> to DATABASE_URL, or sslmode=no-verify, which encrypts and trusts whoever answers.`;
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return `The certificate of the database is for another name (${message}): name it in DATABASE_URL as the certificate does, or add sslmode=no-verify, which encrypts and trusts whoever answers.`;
    default:
      if (code !== undefined && silent.includes(code))
        return `The database does not answer (${code}): check DATABASE_URL, and whether it is running.`;
      if (message.includes('does not support SSL'))
        return 'The database speaks no TLS: say sslmode=disable in DATABASE_URL (PGSSLMODE in the environment counts where it says nothing).';
      return undefined;
  }
}
