/** Codes of a connection that was accepted and closed, by a process that is out of connections or file descriptors. */
const closedCodes: readonly unknown[] = ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'];

/**
 * Whether a process answers at its address. Any response counts, and so does a closed connection: callers who use up
 * all its connections must not make it look hung. A process that hangs accepts none.
 */
export async function isAlive(url: string, timeoutMs: number): Promise<boolean> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(timeoutMs) });
    await answer.body?.cancel();
    return true;
  } catch (error) {
    return closedCodes.includes(((error as Error).cause as { code?: unknown } | undefined)?.code);
  }
}
