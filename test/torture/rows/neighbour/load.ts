import { setTimeout as delay } from 'node:timers/promises';

/** What the first key does repeatedly, at a limited rate. */
export interface Load {
  name: string;
  /** Number of parallel senders. Each waits for its response before it sends again. */
  atOnce: number;
  /** Shortest interval between two requests of a sender. */
  everyMs: number;
  /** Sends once; returns a problem, if any. */
  send: (turn: number) => Promise<string | undefined>;
}

/** Sends until the time is over, and waits for the responses. Each problem is reported once. */
export async function runLoad({ name, atOnce, everyMs, send }: Load, lastsMs: number): Promise<string[]> {
  const problems = new Set<string>();
  const deadline = performance.now() + lastsMs;
  let turn = 0;
  const one = async (index: number): Promise<void> => {
    // They do not all begin at the same moment.
    await delay((index * everyMs) / atOnce);
    for (let next = performance.now() + everyMs; performance.now() < deadline; next += everyMs) {
      const problem = await send(turn++);
      if (problem && problems.size < 5) problems.add(`${name}: ${problem}`);
      await delay(Math.max(0, Math.min(next, deadline) - performance.now()));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, (_, index) => one(index)));
  return [...problems];
}
