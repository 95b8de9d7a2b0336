import type { ServerResponse } from 'node:http';

/** Sends a text again and again, as fast as it is taken, after what Node writes for an answer. */
export function flood({ socket }: ServerResponse, text: string): void {
  const block = Buffer.from(text.repeat(10_000));
  const more = (): void => {
    while (!socket!.destroyed && socket!.write(block));
  };
  socket!.on('error', () => undefined).on('drain', more);
  more();
}
