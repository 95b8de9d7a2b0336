/**
 * Why `fetch` has failed, or what was thrown beside it. Its own messages may have the URL and the headers in them, with
 * what is secret there.
 */
export function fetchFailure(error: unknown): string {
  if (!(error instanceof TypeError)) return (error as Error).message;
  return (error.cause as NodeJS.ErrnoException | undefined)?.code ?? 'it cannot be reached, or it redirects';
}
