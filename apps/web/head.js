// Runs before anything is drawn, so that no page first appears in colours that its reader did not choose.
try {
  const theme = globalThis.localStorage.getItem('darkroom-theme');
  if (theme === 'light' || theme === 'dark') globalThis.document.documentElement.dataset.theme = theme;
} catch {
  // This browser stores nothing for pages.
}
