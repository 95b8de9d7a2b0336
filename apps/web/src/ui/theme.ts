/** `head.js` reads it before a page is drawn. */
const key = 'darkroom-theme';

/** What the reader chose: `light`, `dark`, or `auto` for the system's colours. */
export const chosenTheme = (): string => document.documentElement.dataset.theme ?? 'auto';

export function chooseTheme(theme: string): void {
  const { dataset } = document.documentElement;
  if (theme === 'auto') delete dataset.theme;
  else dataset.theme = theme;
  try {
    localStorage.setItem(key, theme);
  } catch {
    // This browser stores nothing for pages: the choice holds for this one.
  }
}
