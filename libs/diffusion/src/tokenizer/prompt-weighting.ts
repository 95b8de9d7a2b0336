/** A piece of a prompt and how much attention it gets; 1 is plain. */
export interface WeightedText {
  text: string;
  weight: number;
}

/** What one pair of round brackets multiplies by, and one pair of square brackets divides by, as desktop tools have it. */
const step = 1.1;
/** Beyond this, float32 embeddings lose their meaning long before they overflow. */
const largestWeight = 10;
const explicitWeight = /^:\s*([+-]?(?:\d+\.?\d*|\.\d+))\s*\)/;

/**
 * Reads the attention syntax of desktop tools: `(word)` is 1.1, `(word:1.3)` is 1.3, `[word]` is 1 / 1.1; brackets nest and
 * multiply; `\(`, `\)`, `\[`, `\]` and `\\` are the characters themselves. A bracket that is never closed reaches to the end, one that
 * was never opened is text. Weights are held within -10..10.
 */
export function parsePromptWeights(prompt: string): WeightedText[] {
  const pieces: WeightedText[] = [];
  const open: { bracket: '(' | '['; from: number }[] = [];
  let text = '';

  const flush = () => {
    if (text !== '') pieces.push({ text, weight: 1 });
    text = '';
  };
  /** Closes the innermost bracket of a kind, whatever else was left open inside it. */
  const close = (bracket: '(' | '[', factor: number): boolean => {
    const index = open.findLastIndex((entry) => entry.bracket === bracket);
    if (index < 0) return false;
    flush();
    for (const piece of pieces.slice(open[index].from)) piece.weight *= factor;
    open.splice(index, 1);
    return true;
  };

  for (let i = 0; i < prompt.length; i++) {
    const char = prompt[i];
    const explicit = char === ':' ? explicitWeight.exec(prompt.slice(i, i + 32)) : null;
    if (char === '\\' && '()[]\\'.includes(prompt[i + 1] ?? ' ')) text += prompt[++i];
    else if (char === '(' || char === '[') {
      flush();
      open.push({ bracket: char, from: pieces.length });
    } else if (explicit && close('(', Number(explicit[1]))) i += explicit[0].length - 1;
    else if (char === ')' && close('(', step)) continue;
    else if (char === ']' && close('[', 1 / step)) continue;
    else text += char;
  }
  flush();
  for (const { bracket, from } of open)
    for (const piece of pieces.slice(from)) piece.weight *= bracket === '(' ? step : 1 / step;
  return join(pieces);
}

/** Holds weights within bounds and joins neighbours of equal weight, so that plain text stays one piece. */
function join(pieces: WeightedText[]): WeightedText[] {
  const joined: WeightedText[] = [];
  for (const { text, weight } of pieces) {
    const bounded = Math.min(largestWeight, Math.max(-largestWeight, weight));
    const last = joined.at(-1);
    if (last?.weight === bounded) last.text += text;
    else joined.push({ text, weight: bounded });
  }
  return joined;
}
