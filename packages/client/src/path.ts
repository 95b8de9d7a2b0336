/**
 * A path below another.
 * @param segments ids and fixed names.
 * @throws TypeError if one is something else, such as the empty text, `..` or, from JavaScript, undefined, which would
 * make it the path of another request.
 */
export function pathOf(parent: string, ...segments: string[]): string {
  for (const segment of segments as unknown[])
    if (typeof segment !== 'string' || !/^[A-Za-z0-9_-]+$/.test(segment))
      throw new TypeError(`${shown(segment)} is not an id: these have letters, digits, "_" and "-".`);
  return [parent, ...segments].join('/');
}

/** A text in quotation marks; of anything else, what it is. */
function shown(value: unknown): string {
  if (typeof value === 'string') return `"${value}"`;
  return value === null || value === undefined ? String(value) : `A value of type ${typeof value}`;
}
