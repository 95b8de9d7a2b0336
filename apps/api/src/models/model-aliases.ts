import { defaults } from '@app/domain';

/** The model that OpenAI's clients mean by a name; the name itself if no alias fits. @param aliases `name=model` */
export function modelOf(name: string, aliases: readonly string[]): string {
  const found = aliases.map((alias) => alias.split('=')).find(([names]) => fits(names.split('*'), name));
  if (!found) return name;
  return found[1] === 'default' ? defaults.model : found[1];
}

/** Whether a name begins, goes on and ends with these parts, with anything between them. */
function fits(parts: readonly string[], name: string): boolean {
  const [first, ...others] = parts;
  if (!name.startsWith(first)) return false;
  const last = others.pop();
  if (last === undefined) return name === first;
  let at = first.length;
  for (const part of others) {
    const found = name.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return name.length >= at + last.length && name.endsWith(last);
}
