import type { Admission } from '../admission/admission';
import type { Changes } from '../threads/changes';
import type { PieceChoice } from '../calls/piece-choice';
import type { SideThread } from '../threads/side-thread';

/** What the work of two threads depends on. */
export interface SideWorkHost {
  admission: Pick<Admission, 'admit' | 'nextReady'>;
  choice: Pick<PieceChoice, 'nextStep' | 'nextDecoding' | 'nextPiece'>;
  /** By which the engine is told that there may be something to do. */
  changes: Changes;
  isDrawing: () => boolean;
  /** Whether what is drawn wants nothing beside it. */
  isDrawingAlone: () => boolean;
  isClosed: () => boolean;
}

/** The work of an engine with a second thread: it admits, encodes and decodes beside the calls of the U-Net. */
export class SideWork {
  private admitting: Promise<void> | undefined;

  constructor(
    private readonly side: SideThread,
    private readonly host: SideWorkHost,
  ) {}

  /** Makes the next call of the U-Net. If there is none, waits until there may be something to do. */
  async callOrWait(): Promise<void> {
    const { side, host } = this;
    const { admission, choice, changes, isDrawingAlone, isDrawing } = host;
    const { count } = changes;
    this.admitting ??= admission.admit().finally(() => (this.admitting = undefined));
    this.handOver();
    // What wants nothing beside it has not even its own pictures there.
    const piece = isDrawingAlone() ? side.isIdle && choice.nextPiece() : choice.nextStep();
    if (piece && side.mayBeginBeside) {
      side.beginsBeside();
      return isDrawingAlone() ? side.run(piece) : piece();
    }
    // What is admitted first is drawn while others are still admitted.
    await Promise.race([this.admitting, changes.next(count)]);
    if (changes.count !== count) return;
    if (!isDrawing() && side.isIdle) await admission.nextReady();
    else await changes.next(count);
  }

  /** The second thread has ended a piece of work: it is handed the next one. */
  pieceEnded(): void {
    this.handOver();
    this.host.changes.note();
  }

  /** Resolves when nothing is being admitted. */
  async admitted(): Promise<void> {
    await this.admitting;
  }

  /** Hands pictures to be decoded to the second thread. */
  private handOver(): void {
    const { isDrawingAlone, isClosed, choice } = this.host;
    while (!isClosed() && !isDrawingAlone() && this.side.hasPlace) {
      const decode = choice.nextDecoding();
      if (!decode) return;
      void this.side.run(decode);
    }
  }
}
