/**
 * A statement with every occurrence of `part` replaced.
 * @throws Error if there is none: the migration would change nothing, and nobody would notice.
 */
export function replaced(statement: string, part: string, by: string): string {
  if (!statement.includes(part)) throw new Error(`There is no "${part}" in the statement to be changed.`);
  return statement.replaceAll(part, () => by);
}
