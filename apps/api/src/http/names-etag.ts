/**
 * Whether an `If-None-Match` header names an ETag. Express heeds `Cache-Control: no-cache` as well, which every
 * `fetch` sends with it.
 */
export function namesEtag(header: string | undefined, etag: string): boolean {
  const named = (header ?? '').split(',').map((each) => each.trim().replace(/^W\//, ''));
  return named.includes(etag) || named.includes('*');
}
