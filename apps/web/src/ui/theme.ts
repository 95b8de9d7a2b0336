/** `head.js` reads it before a page is drawn. */
const key = 'darkroom-theme';

/** What the reader chose: `light`, `dark`, or `auto` for the system's colours. */
export const chosenTheme = (): string => document.documentElement.dataset.theme ?? 'auto';

export function chooseTheme(theme: string): void {
  const { dataset } = document.documentElement;
  if (theme === 'auto') delete dataset.theme;
  else dataset.theme = theme;
  colourBar();
  try {
    localStorage.setItem(key, theme);
  } catch {
    // This browser stores nothing for pages: the choice holds for this one.
  }
}

/** The bar of a phone's browser has the colours of the page. */
function colourBar(): void {
  const theme = chosenTheme();
  for (const bar of document.querySelectorAll<HTMLMetaElement>('meta[name="theme-color"]')) {
    const { of } = bar.dataset;
    bar.media = theme === 'auto' ? `(prefers-color-scheme: ${of})` : theme === of ? 'all' : 'not all';
  }
}
colourBar();
