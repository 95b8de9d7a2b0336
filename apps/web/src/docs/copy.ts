/**
 * Puts the text of an element on the clipboard. A page without HTTPS has no clipboard of its own but on localhost, and
 * copies what is selected; if that fails too, the text stays selected for the user's own Ctrl+C.
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
