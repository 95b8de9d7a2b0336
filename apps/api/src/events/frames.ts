import type { StepMessage } from '@app/image-tasks';

/** Goes out when there is nothing to say, so that no proxy takes a quiet stream for a dead one. */
export const comment = ': still here\n\n';

/** One event as it is sent. */
export function frame(event: string, data: unknown, id?: string): string {
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** A step as all streams of its task send it. */
export interface StepFrames {
  attempt: number;
  step: number;
  /** With its preview, where it has one. */
  whole: string;
  /** Without it. */
  brief: string;
}

/** Writes a step once, for however many streams. */
export function stepFrames({ attempt, step, total, preview }: StepMessage): StepFrames {
  const id = `${attempt}-${step}`;
  const brief = frame('progress', { step, total, preview: null }, id);
  const whole = preview ? frame('progress', { step, total, preview: `data:image/jpeg;base64,${preview}` }, id) : brief;
  return { attempt, step, whole, brief };
}

/** The last event of a task that has terminated. */
export function endFrame(attempt: number, record: unknown): string {
  return frame('terminated', record, `${attempt}-end`);
}

/** Whether a client says that it has had the last event. */
export function hasHadEnd(lastEventId: string | undefined): boolean {
  return /^\d{1,9}-end$/.test(lastEventId ?? '');
}
