import type { DrawingInProgress } from './drawing-in-progress';
import { bytesPerRow } from './picture-memory';

/** Rows of one call of the U-Net. On the CPU a call of more takes no less time for each. */
const maxRows = { cpu: 16, gpu: 32 };

/** How many rows one call of the U-Net may have, for each group of pictures: as many as memory allows, and what earlier calls have shown. */
export class RowLimits {
  private readonly max: number;
  /** Rows of the groups of which a larger call ran out of memory. */
  private readonly learnt = new Map<string, number>();

  /** @param drawingBytes bytes that are left for drawing when every idle model makes room */
  constructor(
    device: string,
    private readonly drawingBytes: () => number,
  ) {
    this.max = maxRows[device === 'cpu' ? 'cpu' : 'gpu'];
  }

  /** Never less than one, so that a picture is tried in any case. @param drawing one with pictures of this group */
  of(group: string, { pipeline, command }: DrawingInProgress): number {
    const fitting = Math.floor(this.drawingBytes() / bytesPerRow(pipeline.facts, command.request));
    return Math.max(1, Math.min(this.max, this.learnt.get(group) ?? Infinity, fitting));
  }

  /**
   * Halves the rows of a group of which a call with `rows` rows ran out of memory.
   * @returns whether that helps: a picture’s own rows cannot be parted
   */
  halve(group: string, rows: number, rowsOfPicture: number): boolean {
    if (rows <= rowsOfPicture) return false;
    this.learnt.set(group, Math.max(rowsOfPicture, Math.floor(rows / 2)));
    return true;
  }
}
