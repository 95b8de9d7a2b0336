/**
 * A path below another.
 * @param segments ids and fixed names.
 * @throws TypeError if one is something else, such as the empty text or `..`, which would make it the
 * path of another request.
 */
export function pathOf(parent: string, ...segments: string[]): string {
  const wrong = segments.find((segment) => !/^[A-Za-z0-9_-]+$/.test(segment));
  if (wrong !== undefined) throw new TypeError(`"${wrong}" is not an id: these have letters, digits, "_" and "-".`);
  return [parent, ...segments].join('/');
}
