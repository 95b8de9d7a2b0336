/** The same sentence is told again after so many others. */
const mostRemembered = 1000;

/** Passes each sentence on once, so that what goes wrong again and again does not fill the log. */
export function onceEach(tell: (sentence: string) => void): (sentence: string) => void {
  const told = new Set<string>();
  return (sentence) => {
    if (told.has(sentence)) return;
    if (told.size === mostRemembered) told.clear();
    told.add(sentence);
    tell(sentence);
  };
}
