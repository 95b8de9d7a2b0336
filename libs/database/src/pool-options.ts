import type { ClientBase } from 'pg';
import { Client } from 'pg';

/** What one statement of the api or of a worker may take: the caller has gone by then, and others wait for the connection. */
export const statementTimeoutMs = 30_000;
/** A process that freezes in a transaction must not hold its locks against the others. */
const idleInTransactionMs = 60_000;

export interface SessionLimits {
  /** What one statement may take; any time by default. The driver gives up a little later, should the server never answer. */
  statementTimeoutMs?: number;
  /** How long a statement waits for a lock; any time by default. */
  lockTimeoutMs?: number;
  /** Tables are looked for in these schemas. */
  searchPath?: string;
  /** How long the driver waits for an answer; a little longer than `statementTimeoutMs` by default. */
  queryTimeoutMs?: number;
}

/** A connection whose loss is no error of the process, whoever listens: what is asked of it next fails, and says why. */
export class SteadyClient extends Client {
  override emit(event: string | symbol, ...values: unknown[]): boolean {
    if (event === 'error' && this.listenerCount('error') === 0) return false;
    return super.emit(event, ...values);
  }
}

/**
 * Breaks the connection when the driver has given up on a statement, whose answer might still come: whoever took the connection from
 * the pool next would wait behind it.
 */
class ImpatientClient extends SteadyClient {
  override query = ((...parameters: unknown[]) => {
    const answer = (super.query as (...parameters: unknown[]) => unknown).apply(this, parameters);
    // Where there is a callback instead, the pool itself drops the connection.
    if (answer instanceof Promise)
      answer.catch(({ message }: Error) => {
        if (message === 'Query read timeout') void this.end().catch(() => undefined);
      });
    return answer;
  }) as Client['query'];
}

/** What all pools have in common. */
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
    Client: ImpatientClient,
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
    ...(queryTimeoutMs && { query_timeout: queryTimeoutMs }),
    // Said in a statement: a pooler in session mode passes no startup parameter on.
    onConnect: async (client: ClientBase): Promise<void> => {
      await client.query(settings.map((setting) => `SET ${setting}`).join('; '));
    },
  };
}
