/** Ids of the record, or of the records, in an answer. */
export function idsIn(body: unknown): string[] {
  return [body].flat().flatMap((record) => {
    const id = (record as { id?: unknown } | null | undefined)?.id;
    return typeof id === 'string' ? [id] : [];
  });
}
