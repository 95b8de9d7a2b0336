/** A sentence is passed on again after so many others. */
const mostRemembered = 1000;

/** Passes each sentence on once, so that what goes wrong again and again does not fill the log. */
export function onceEach(pass: (sentence: string) => void): (sentence: string) => void {
  const passed = new Set<string>();
  return (sentence) => {
    if (passed.has(sentence)) return;
    if (passed.size === mostRemembered) passed.clear();
    passed.add(sentence);
    pass(sentence);
  };
}
