/**
 * Copies the text of an element. Without HTTPS only localhost has a clipboard API, so the selection is copied; if that
 * fails too, the text stays selected for the user's own Ctrl+C.
 */
export async function copyFrom(element: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(element.textContent.replace(/\n$/, ''));
    return true;
  } catch {
    getSelection()?.selectAllChildren(element);
    return document.execCommand('copy');
  }
}
