import { sizeOf } from '@app/domain';
import type { InstalledModel } from '@app/model-store';

/** What is to be known of a model that was installed, a sentence each; nothing of most. */
export function notesOn({ fixed }: InstalledModel): string[] {
  const notes: string[] = [];
  const sizes = Object.values(sizeOf);
  const fits = ({ width, height }: { width: number; height: number }): boolean =>
    width === (fixed.width ?? width) && height === (fixed.height ?? height);
  if (!sizes.some(fits)) {
    const own = `${fixed.width ?? 'any'} x ${fixed.height ?? 'any'}`;
    const ours = sizes.map(({ width, height }) => `${width} x ${height}`).join(', ');
    notes.push(
      `No request can be drawn with it: its graphs take ${own} pixels only, and requests are for ${ours}. Export it without a fixed size.`,
    );
  }
  if (fixed.chunks !== undefined)
    notes.push(`Prompts longer than ${fixed.chunks * 75} tokens are refused: its U-Net was exported for that length.`);
  return notes;
}
