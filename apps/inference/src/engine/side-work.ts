import type { Admission } from './admission';
import type { LanePlaces } from './lane-places';
import type { PieceChoice } from './piece-choice';
import type { SideThread } from './side-thread';

/** What the work of two threads depends on. */
export interface SideWorkHost {
  admission: Admission;
  choice: PieceChoice;
  /** By which the engine is told that there may be something to do. */
  places: LanePlaces;
  isDrawing: () => boolean;
  /** Whether what is drawn wants nothing beside it. */
  isAlone: () => boolean;
  isClosed: () => boolean;
}

/** The work of an engine with a second thread: it admits, encodes and decodes beside the calls of the U-Net. */
export class SideWork {
  private admitting: Promise<void> | undefined;

  constructor(
    private readonly side: SideThread,
    private readonly host: SideWorkHost,
  ) {}

  /** Makes the next call of the U-Net; if there is none, waits until there may be something to do. */
  async goOn(): Promise<void> {
    const { side, host } = this;
    const { admission, choice, places, isAlone, isDrawing } = host;
    this.admitting ??= admission.admit().finally(() => (this.admitting = undefined));
    this.decode();
    // What wants nothing beside it has not even its own pictures there.
    const piece = isAlone() ? side.isIdle && choice.next() : choice.step();
    if (piece && side.letsCallBegin()) return isAlone() ? side.run(piece) : piece();
    await this.admitting;
    if (!isDrawing() && side.isIdle) await admission.settled();
    else await places.change();
  }

  /** A piece of work of the second thread has ended. */
  ended(): void {
    this.decode();
    this.host.places.wake();
  }

  /** Resolves when nothing is being admitted. */
  async admitted(): Promise<void> {
    await this.admitting;
  }

  /** Decodes a picture, if the second thread is at nothing. */
  private decode(): void {
    const { isAlone, isClosed, choice } = this.host;
    const decode = isClosed() || isAlone() || !this.side.isIdle ? undefined : choice.decoding();
    if (decode) void this.side.run(decode);
  }
}
