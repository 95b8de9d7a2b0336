/**
 * Quotes a value of an uploaded file: escaped, also what turns the direction of a line, and never longer than a line.
 */
export function quote(value: unknown): string {
  const text = JSON.stringify(value) ?? 'undefined';
  const escaped = text.replace(/\p{Cf}/gu, (mark) => `\\u{${mark.codePointAt(0)!.toString(16)}}`);
  return escaped.length > 160 ? `${escaped.slice(0, 160)}…"` : escaped;
}
