/** Rows as lines of text, each column as wide as its widest cell. @param rows the first has the heads of the columns */
export function textTable(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  const line = (row: readonly string[]) => row.map((cell, column) => cell.padEnd(widths[column])).join('  ');
  return rows.map((row) => line(row).trimEnd());
}
