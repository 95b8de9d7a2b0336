import type { Response } from 'express';

/** Sent while there is no event, so that no proxy closes an idle stream. */
export const comment = ': still here\n\n';

/** The head of a stream's answer; a HEAD request gets only these. */
export function sendStreamHead(response: Response): void {
  response.status(200).set({
    'Content-Type': 'text/event-stream; charset=utf-8',
    'Cache-Control': 'no-store',
    'X-Accel-Buffering': 'no',
  });
}

/** One event, ready to send. */
export function frame(event: string, data: unknown, id?: string): string {
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
