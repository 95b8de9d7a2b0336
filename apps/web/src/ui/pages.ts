/** The pages of a list, one request each. */
export type Pages<T> = AsyncGenerator<T[], void, undefined>;

/** Reads the first pages of a list. @returns their rows, and whether there may be more */
export async function readPages<T>(
  pages: Pages<T>,
  count: number,
  pageSize: number,
): Promise<{ rows: T[]; hasMore: boolean }> {
  const rows: T[] = [];
  for (let read = 0; read < count; read++) {
    const page = (await pages.next()).value ?? [];
    rows.push(...page);
    if (page.length < pageSize) return { rows, hasMore: false };
  }
  return { rows, hasMore: true };
}
