import { inOneLine } from '@app/diffusion';
import type { Figure } from '../section';
import type { GpuBench } from './gpu-section';
import { writeValues } from './models';
import { sections } from './sections';

/** What a section's process is told, as its argument. */
export interface SectionTask extends Omit<GpuBench, 'tell'> {
  /** Of a section; without it the process writes the values of the models. */
  section?: string;
}

/** What it tells, one message each. */
export type Told = { told: Figure | string } | { error: string };

const sent: Promise<unknown>[] = [];

function send(message: Told): void {
  sent.push(new Promise((done) => process.send!(message, done)));
}

async function main(): Promise<void> {
  const { section: name, ...bench } = JSON.parse(process.argv[2]) as SectionTask;
  if (name === undefined) return writeValues(bench);
  const section = sections.find((each) => each.name === name)!;
  await section.measure({ ...bench, tell: (told) => send({ told }) });
}

// It leads a process group, which ends with whoever reads its messages.
process.on('disconnect', () => process.kill(-process.pid, 'SIGKILL'));

void main()
  .catch((error: Error) => send({ error: inOneLine(error.message) }))
  .then(() => Promise.all(sent))
  // Threads of a runtime would keep the process alive.
  .finally(() => process.exit());
