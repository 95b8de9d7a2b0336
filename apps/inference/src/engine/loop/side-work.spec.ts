import { Changes } from '../threads/changes';
import type { Piece } from '../calls/piece-choice';
import { SideThread } from '../threads/side-thread';
import { SideWork } from './side-work';

/** Something that goes on until it is ended. */
class Going {
  end!: () => void;
  readonly ended = new Promise<void>((resolve) => (this.end = resolve));
}

describe(SideWork.name, () => {
  let side: SideThread;
  let changes: Changes;
  let work: SideWork;
  let isDrawingAlone: boolean;
  let isClosed: boolean;
  let isDrawing: boolean;
  let admission: Going;
  /** Pieces to choose from, and those that were begun, in order. */
  let calls: Piece[];
  let decodings: Piece[];
  let begun: string[];

  beforeEach(() => {
    isDrawingAlone = isClosed = false;
    isDrawing = true;
    admission = new Going();
    admission.end();
    [calls, decodings, begun] = [[], [], []];
    changes = new Changes();
    const lost = (error: Error): void => {
      throw error;
    };
    // Its thread starts only for a graph.
    side = SideThread.of({ device: 'cuda:0', intraOpNumThreads: 1 }, () => work.pieceEnded(), lost)!;
    work = new SideWork(side, {
      admission: { admit: () => admission.ended, nextReady: async () => void begun.push('nextReady') },
      choice: {
        nextStep: () => calls.shift(),
        nextDecoding: () => decodings.shift(),
        nextPiece: () => decodings.shift() ?? calls.shift(),
      },
      changes,
      isDrawing: () => isDrawing,
      isDrawingAlone: () => isDrawingAlone,
      isClosed: () => isClosed,
    });
  });

  function piece(name: string, of: Piece[]): Going {
    const going = new Going();
    of.push(() => {
      begun.push(name);
      return going.ended;
    });
    return going;
  }

  it('hands the second thread two pictures at a time, and the next one when one of them is decoded', async () => {
    const [first] = ['first', 'second', 'third'].map((name) => piece(name, decodings));
    piece('call', calls).end();
    await work.callOrWait();
    expect(begun).toEqual(['first', 'second', 'call']);
    first.end();
    await changes.next();
    expect(begun).toEqual(['first', 'second', 'call', 'third']);
  });

  it('hands it nothing more once it is closed', async () => {
    const first = piece('first', decodings);
    piece('call', calls).end();
    await work.callOrWait();
    isClosed = true;
    piece('second', decodings);
    first.end();
    await side.idle();
    expect(begun).toEqual(['first', 'call']);
  });

  it('gives one that wants nothing beside it one piece at a time', async () => {
    isDrawingAlone = true;
    const first = piece('first', decodings);
    piece('second', decodings);
    piece('call', calls).end();
    const working = work.callOrWait();
    expect(begun).toEqual(['first']);
    first.end();
    await working;
    expect(begun).toEqual(['first']);
  });

  it('makes a call of the U-Net while others are admitted', async () => {
    admission = new Going();
    piece('call', calls).end();
    await work.callOrWait();
    expect(begun).toEqual(['call']);
    admission.end();
    await work.admitted();
  });

  it('looks again when one is admitted, though others still are', async () => {
    isDrawing = false;
    admission = new Going();
    const working = work.callOrWait();
    piece('call', calls).end();
    changes.note();
    await working;
    await work.callOrWait();
    expect(begun).toEqual(['call']);
    admission.end();
    await work.admitted();
  });

  it('waits until a model is known when there is nothing else to wait for', async () => {
    isDrawing = false;
    await work.callOrWait();
    expect(begun).toEqual(['nextReady']);
  });

  it('does not wait for a model while a picture is decoded, but for its end', async () => {
    const first = piece('first', decodings);
    const working = work.callOrWait();
    first.end();
    await working;
    expect(begun).toEqual(['first']);
  });
});
