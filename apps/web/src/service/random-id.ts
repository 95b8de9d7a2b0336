/** What the typed client asks of `node:crypto`. `crypto.randomUUID` exists only on HTTPS and localhost, and this page may be opened elsewhere. */
export function randomUUID(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
