import type { GraphFile, GraphSession, TensorCopy } from '@app/diffusion';

/** What an engine asks of a lane, which does one thing after the other and answers each with its id. */
export type LaneCommand = { id: number } & (
  | { type: 'open'; graph: GraphFile; intraOpNumThreads: number; optimizedModelDir: string }
  | { type: 'run'; session: number; feeds: Record<string, TensorCopy>; output: string }
  | { type: 'release'; session: number }
);

/** A graph that a lane has opened; `session` is its number there. */
export type OpenedGraph = { session: number } & Pick<GraphSession, 'file' | 'inputs' | 'outputs'>;

/** Of an error, only what it is called and says crosses the border of a thread. */
export type LaneAnswer = { id: number } & (
  | { type: 'opened'; opened: OpenedGraph }
  | { type: 'result'; tensor: TensorCopy }
  | { type: 'released' }
  | { type: 'failed'; name: string; message: string }
);
