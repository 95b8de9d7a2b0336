/** Asks at most once in a while, and gives the last answer, good or bad, in between. */
export function remembering<T>(ask: () => Promise<T>, forMs: number): () => Promise<T> {
  let asked: { at: number; answer: Promise<T> } | undefined;
  return () => {
    const now = performance.now();
    if (!asked || now - asked.at >= forMs) asked = { at: now, answer: ask() };
    return asked.answer;
  };
}
