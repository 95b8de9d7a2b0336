import { Client, type ClientBase } from 'pg';

/**
 * Longest time of one statement of the api or a worker: by then the caller has gone, and others wait for the
 * connection.
 */
export const statementTimeoutMs = 30_000;
/** A process that freezes inside a transaction must not keep its locks. */
const idleInTransactionMs = 60_000;

export interface SessionLimits {
  /** Unlimited by default. The driver gives up a little later, in case the server never answers. */
  statementTimeoutMs?: number;
  /** Longest wait of a statement for a lock; unlimited by default. */
  lockTimeoutMs?: number;
  searchPath?: string;
  /** Longest wait of the driver for a response; by default a little longer than `statementTimeoutMs`. */
  queryTimeoutMs?: number;
}

/**
 * A client whose connection loss does not crash the process when nobody listens for the error; the next query fails
 * with the reason.
 */
export class SteadyClient extends Client {
  isLost = false;

  override emit(event: string | symbol, ...values: unknown[]): boolean {
    if (event === 'error' || event === 'end') this.isLost = true;
    if (event === 'error' && this.listenerCount('error') === 0) return false;
    return super.emit(event, ...values);
  }
}

/**
 * Closes the connection when the driver has given up on a statement: its response may still arrive, and the next user
 * would wait behind it.
 */
class TimeoutClosingClient extends SteadyClient {
  override query = ((...parameters: unknown[]) => {
    const answer = (super.query as (...parameters: unknown[]) => unknown).apply(this, parameters);
    // For a callback, the pool itself drops the connection.
    if (answer instanceof Promise)
      answer.catch(({ message }: Error) => {
        if (message === 'Query read timeout') void this.end().catch(() => undefined);
      });
    return answer;
  }) as Client['query'];
}

/**
 * What our statements mean, and how the driver reads answers, must not depend on defaults of a database or a role. Only
 * whether it may be written to is left to them.
 */
const reliedOn = {
  client_encoding: 'UTF8',
  datestyle: 'ISO, MDY',
  intervalstyle: 'postgres',
  timezone: 'UTC',
  bytea_output: 'hex',
  extra_float_digits: '1',
  standard_conforming_strings: 'on',
  array_nulls: 'on',
  transform_null_equals: 'off',
  default_transaction_isolation: 'read committed',
  default_transaction_deferrable: 'off',
};

/**
 * Statements for a new connection, sent at once. Not startup parameters: a pooler in session mode passes none on, and
 * rejects unknown ones before we can recognise it.
 */
export function sessionSettings(limits: SessionLimits & { idleInTransactionMs?: number } = {}): string {
  const settings = {
    ...reliedOn,
    search_path: limits.searchPath ?? 'public',
    statement_timeout: limits.statementTimeoutMs ?? 0,
    lock_timeout: limits.lockTimeoutMs ?? 0,
    idle_in_transaction_session_timeout: limits.idleInTransactionMs ?? 0,
  };
  const statements = Object.entries(settings).map(([name, value]) =>
    name === 'search_path' ? `SET search_path = ${value}` : `SET ${name} = '${value}'`,
  );
  // Not every version of PostgreSQL knows these two.
  return `${statements.join('; ')}; SELECT set_config(name, '0', false) FROM pg_settings
    WHERE name IN ('idle_session_timeout', 'transaction_timeout') AND setting <> '0'`;
}

/** Options that all pools share. */
export function poolOptions(limits: SessionLimits = {}) {
  const { statementTimeoutMs } = limits;
  const queryTimeoutMs = limits.queryTimeoutMs ?? (statementTimeoutMs && statementTimeoutMs + 5_000);
  const settings = sessionSettings({ ...limits, idleInTransactionMs });
  return {
    Client: TimeoutClosingClient,
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
    ...(queryTimeoutMs && { query_timeout: queryTimeoutMs }),
    onConnect: async (client: ClientBase): Promise<void> => {
      await client.query(settings);
    },
  };
}
