import type { Device, GraphFile, GraphSession } from '@app/diffusion';
import { laneCount } from '../lane';
import { RemoteSessions } from './remote-sessions';

/**
 * A model is loaded into lanes only if it takes no more than this part of the memory with them: their weights are
 * copies.
 */
const shareOfMemory = 1 / 4;

/** The graphs that pictures are drawn with, once their texts are encoded. */
export type DrawingGraphs<T> = Record<'unet' | 'vaeDecoder', T>;

/** The lanes of an engine: threads with half of its processor threads each. They start when they are first needed. */
export class Lanes {
  private lanes: readonly RemoteSessions[] = [];

  /**
   * @param onLost told when a lane has ended by itself and the others have ended what they were at: the engine is of no
   * use
   */
  constructor(
    private readonly threads: number,
    private readonly memoryBytes: number,
    private readonly onLost: (error: Error) => void,
  ) {}

  /** None on a GPU, which has no halves, nor for a single thread. */
  static of(device: Device, threads: number, memoryBytes: number, onLost: (error: Error) => void): Lanes | undefined {
    return device === 'cpu' && threads >= laneCount ? new Lanes(threads, memoryBytes, onLost) : undefined;
  }

  /** Whether they may have copies of a model. @param bytes what it takes with them */
  haveRoomFor(bytes: number): boolean {
    return bytes <= this.memoryBytes * shareOfMemory;
  }

  /** @returns the graphs in each lane @throws Error if one cannot be loaded; then none stays loaded */
  async open(graphs: DrawingGraphs<GraphFile>, cacheOf: (graph: string) => Promise<string>) {
    const opened: GraphSession[] = [];
    const inLane = async (lane: RemoteSessions, index: number): Promise<DrawingGraphs<GraphSession>> => {
      // Where they cannot be halved, one lane has one thread more.
      const intraOpNumThreads = Math.floor((this.threads + index) / laneCount);
      const open = async (graph: GraphFile): Promise<GraphSession> => {
        const optimizedModelDir = await cacheOf(graph.path);
        const session = await lane.open({ type: 'open', graph, device: 'cpu', intraOpNumThreads, optimizedModelDir });
        opened.push(session);
        return session;
      };
      return { unet: await open(graphs.unet), vaeDecoder: await open(graphs.vaeDecoder) };
    };
    if (this.lanes.length === 0)
      this.lanes = Array.from(
        { length: laneCount },
        () => new RemoteSessions('A lane', (error) => void this.lost(error)),
      );
    const results = await Promise.allSettled(this.lanes.map(inLane));
    const failed = results.find((result) => result.status === 'rejected');
    if (!failed) return results.map((result) => (result as PromiseFulfilledResult<DrawingGraphs<GraphSession>>).value);
    await Promise.all(opened.map((session) => session.release()));
    throw failed.reason as Error;
  }

  /** Ends the threads when they have done what they were asked for. */
  async close(): Promise<void> {
    await Promise.all(this.lanes.map((lane) => lane.close()));
  }

  private async lost(error: Error): Promise<void> {
    // A thread that is ended inside the runtime takes the process with it.
    await this.close();
    this.onLost(error);
  }
}
