/** The file is not a well-formed safetensors file; the message is one plain sentence. */
export class SafetensorsError extends Error {
  override name = 'SafetensorsError';
}

/** Deepest nesting of a valid header: the header, a tensor's entry, and its shape. */
const MAX_DEPTH = 3;
/** Keys of all objects together. A LoRA of every layer of SD 1.5 has about 1,200 tensors with four keys each. */
const MAX_KEYS = 100_000;
/** Names of layers have up to some hundred characters. */
const MAX_KEY_LENGTH = 1_000;
/** A weight has at most four dimensions. */
const MAX_LIST_LENGTH = 8;

/** An object or list that is open at the current position. */
interface Scope {
  /** Keys of an object so far. */
  keys?: Set<string>;
  /** Commas in a list so far. */
  commas: number;
}

/**
 * Scans a header before it is parsed, so that a hostile one cannot make the parser expensive: it limits the
 * depth, the keys and the lists, and rejects repeated keys, of which JSON.parse would silently keep the last. The
 * text need not be JSON.
 * @throws SafetensorsError
 */
export function scanHeader(text: string): void {
  const scopes: Scope[] = [];
  let keys = 0;
  let expectsKey = false;
  for (let i = 0; i < text.length; i++) {
    const character = text[i];
    if (character === '{' || character === '[') {
      if (scopes.length === MAX_DEPTH) throw new SafetensorsError(`The header has more than ${MAX_DEPTH} levels.`);
      scopes.push({ commas: 0, ...(character === '{' && { keys: new Set() }) });
      expectsKey = character === '{';
    } else if (character === '}' || character === ']') {
      scopes.pop();
    } else if (character === ',') {
      const scope = scopes.at(-1);
      expectsKey = scope?.keys !== undefined;
      if (scope && !expectsKey && ++scope.commas === MAX_LIST_LENGTH)
        throw new SafetensorsError(`The header has a list of more than ${MAX_LIST_LENGTH} elements.`);
    } else if (character === '"') {
      const begin = i++;
      while (i < text.length && text[i] !== '"') i += text[i] === '\\' ? 2 : 1;
      if (!expectsKey) continue;
      expectsKey = false;
      if (i - begin > MAX_KEY_LENGTH)
        throw new SafetensorsError(`The header has a name of more than ${MAX_KEY_LENGTH} characters.`);
      if (++keys > MAX_KEYS) throw new SafetensorsError(`The header has more than ${MAX_KEYS} keys.`);
      remember(scopes.at(-1)!.keys!, JSON.parse(text.slice(begin, i + 1)) as string);
    }
  }
}

function remember(keys: Set<string>, key: string): void {
  if (keys.has(key)) throw new SafetensorsError(`The header has the key ${JSON.stringify(key)} twice.`);
  keys.add(key);
}
