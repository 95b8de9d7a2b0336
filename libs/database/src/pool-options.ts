import { Client, type ClientBase } from 'pg';

/**
 * Longest time of one statement of the api or a worker: by then the caller has gone, and others
 * wait for the connection.
 */
export const statementTimeoutMs = 30_000;
/** A process that freezes inside a transaction must not keep its locks. */
const idleInTransactionMs = 60_000;

export interface SessionLimits {
  /**
   * Longest time of one statement; unlimited by default. The driver gives up a little later, in case
   * the server never answers.
   */
  statementTimeoutMs?: number;
  /** Longest wait of a statement for a lock; unlimited by default. */
  lockTimeoutMs?: number;
  /** The schemas to look for tables in. */
  searchPath?: string;
  /** Longest wait of the driver for a response; by default a little longer than `statementTimeoutMs`. */
  queryTimeoutMs?: number;
}

/**
 * A client whose connection loss does not crash the process when nobody listens for the error; the next query
 * fails with the reason.
 */
export class SteadyClient extends Client {
  /** Whether the connection has been lost or ended. */
  isLost = false;

  override emit(event: string | symbol, ...values: unknown[]): boolean {
    if (event === 'error' || event === 'end') this.isLost = true;
    if (event === 'error' && this.listenerCount('error') === 0) return false;
    return super.emit(event, ...values);
  }
}

/**
 * Closes the connection when the driver has given up on a statement, because its response may still arrive: the next
 * user of the connection would wait behind it.
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

/** Options that all pools share. */
export function poolOptions(limits: SessionLimits = {}) {
  const { statementTimeoutMs, lockTimeoutMs, searchPath } = limits;
  const queryTimeoutMs = limits.queryTimeoutMs ?? (statementTimeoutMs && statementTimeoutMs + 5_000);
  const settings = [
    `idle_in_transaction_session_timeout = ${idleInTransactionMs}`,
    ...(statementTimeoutMs ? [`statement_timeout = ${statementTimeoutMs}`] : []),
    ...(lockTimeoutMs ? [`lock_timeout = ${lockTimeoutMs}`] : []),
    ...(searchPath ? [`search_path = ${searchPath}`] : []),
  ];
  return {
    Client: TimeoutClosingClient,
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
    ...(queryTimeoutMs && { query_timeout: queryTimeoutMs }),
    // Set by a statement, because a pooler in session mode passes no startup parameter on.
    onConnect: async (client: ClientBase): Promise<void> => {
      await client.query(settings.map((setting) => `SET ${setting}`).join('; '));
    },
  };
}
