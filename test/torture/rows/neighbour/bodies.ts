/** A text of meaningless words. */
export function plainText(length: number): string {
  return 'lorem ipsum dolor sit amet '.repeat(Math.ceil(length / 27)).slice(0, length);
}

/** A body of `bytes` that is rejected only for the length of its prompt. */
export function plainBody(bytes: number): Buffer {
  const frame = JSON.stringify({ prompt: '', model: 'shapes' }).length;
  return Buffer.from(JSON.stringify({ prompt: plainText(bytes - frame), model: 'shapes' }));
}
