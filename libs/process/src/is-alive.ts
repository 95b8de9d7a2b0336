/** What a connection ends with that was taken and closed: by a process that has no more places for connections, or descriptors. */
const closedCodes: readonly unknown[] = ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'];

/**
 * Whether a process answers at its address. Any answer will do, and a connection that it closes is one: callers who take all
 * its connections must not make it look as if it hung. A process that hangs takes none.
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
