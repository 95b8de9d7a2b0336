import { type ChildProcess, execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import type { Figure } from '../section';
import type { GpuSection } from './gpu-section';
import type { SectionTask, Told } from './section-process';

const running = new Set<ChildProcess>();

/** How long a process may take to die: one that waits for a driver does not, and is left. */
const graceMs = 3000;

/** Runs a task in a process group, all of which is ended with it, at the latest at its end. */
export async function run(
  task: SectionTask,
  { env, libraries, tell }: Pick<GpuSection, 'env'> & { libraries: string; tell: (told: Figure | string) => void },
): Promise<string | undefined> {
  const child = fork(join(__dirname, 'section-process.js'), [JSON.stringify(task)], {
    ...{ detached: true, stdio: ['ignore', 'inherit', 'pipe', 'ipc'] },
    env: { ...process.env, ...(libraries && { LD_LIBRARY_PATH: libraries }), ...env },
  });
  running.add(child);
  let problem: string | undefined;
  let lastLine = '';
  child.on('message', (message: Told) => {
    if ('told' in message) tell(message.told);
    else problem = message.error;
  });
  createInterface({ input: child.stderr! }).on('line', (line) => (lastLine = line.trim() || lastLine));
  const closed = once(child, 'close') as Promise<[number | null, string | null]>;
  const over = wait(Math.max(0, task.until - Date.now()), undefined, { ref: false });
  const ended = await Promise.race([closed, over]);
  end(child);
  running.delete(child);
  if (!ended) {
    await Promise.race([closed, wait(graceMs)]);
    return 'its time was over';
  }
  const [code, signal] = ended;
  if (code === 0) return problem;
  return problem ?? `its process ended with ${code ?? signal}${lastLine && `: ${lastLine.slice(0, 300)}`}`;
}

function end({ pid }: ChildProcess): void {
  try {
    process.kill(-pid!, 'SIGKILL');
  } catch {
    // It has ended.
  }
}

export const endAll = (): void => running.forEach(end);

/** What another program prints; undefined if it fails or takes longer than ten seconds. */
export function printed(program: string, args: readonly string[]): string | undefined {
  try {
    const stdio: ['ignore', 'pipe', 'ignore'] = ['ignore', 'pipe', 'ignore'];
    return execFileSync(program, args, { timeout: 10_000, killSignal: 'SIGKILL', stdio }).toString().trim();
  } catch {
    return undefined;
  }
}
