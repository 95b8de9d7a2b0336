/**
 * Moves the focus between tiles by the arrow keys, Home and End; up and down by the rows that the
 * grid has at its width.
 */
export function moveFocus(event: KeyboardEvent, list: HTMLElement | null): void {
  const tiles = [...(list?.querySelectorAll<HTMLElement>('[data-tile]') ?? [])];
  const at = tiles.findIndex((tile) => tile === document.activeElement);
  if (at < 0) return;
  const columns = columnsOf(tiles);
  const steps: Record<string, number> = {
    ArrowRight: 1,
    ArrowLeft: -1,
    ArrowDown: columns,
    ArrowUp: -columns,
    Home: -at,
    End: tiles.length - 1 - at,
  };
  const target = event.key in steps ? tiles[at + steps[event.key]] : undefined;
  if (!target) return;
  event.preventDefault();
  target.focus();
  target.scrollIntoView({ block: 'nearest' });
}

function columnsOf(tiles: readonly HTMLElement[]): number {
  const tops = tiles.map((tile) => Math.round(tile.getBoundingClientRect().top));
  const next = tops.findIndex((top) => top !== tops[0]);
  return next < 0 ? tiles.length : next;
}
