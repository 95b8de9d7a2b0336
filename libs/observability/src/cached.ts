/** Caches the result of `ask`, good or bad, for `forMs`. */
export function cached<T>(ask: () => Promise<T>, forMs: number): () => Promise<T> {
  let asked: { at: number; answer: Promise<T> } | undefined;
  return () => {
    const now = performance.now();
    if (!asked || now - asked.at >= forMs) asked = { at: now, answer: ask() };
    return asked.answer;
  };
}
