import type { StepMessage } from '@app/tasks';

/** Sent when there is no event, so that no proxy closes an idle stream. */
export const comment = ': still here\n\n';

/** One event, ready to send. */
export function frame(event: string, data: unknown, id?: string): string {
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** A step, ready to send to all streams of its task. */
export interface StepFrames {
  attempt: number;
  step: number;
  /** With its preview, if it has one. */
  whole: string;
  /** Without it. */
  brief: string;
}

/** Serialises a step once for all streams. */
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

/** The attempt whose last event a client reports to have received; undefined if it reports none. */
export function endedAttempt(lastEventId: string | undefined): number | undefined {
  const match = /^(\d{1,9})-end$/.exec(lastEventId ?? '');
  return match ? Number(match[1]) : undefined;
}
