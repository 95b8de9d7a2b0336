/** Without spelling differences that the service ignores: case, Unicode form, spaces or hyphens. */
const plain = (text: string): string =>
  text
    .normalize('NFC')
    .toLowerCase()
    .replace(/[\s-]+/g, ' ')
    .trim();

/** Whether a prompt seems to lack a Fine-Tune's name. Only a hint: the service compares whole words and decides. */
export function seemsToLack(prompt: string, name: string): boolean {
  return !plain(prompt).includes(plain(name));
}
