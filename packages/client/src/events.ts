import { createParser } from 'eventsource-parser';
import type { Connection } from './connection.ts';
import { backOffMs, sleep } from './timing.ts';

/** Events of a Generation, a Prompt or a training, up to its end. `T` is the record as it is then. */
export type TaskEvent<T> =
  /** `position` are drawn before it. */
  | { event: 'queued'; data: { position: number } }
  /** A training has begun, or had when it was asked for: its pictures are read, or some steps are done. */
  | { event: 'started'; data: { step: number; total: number } }
  /**
   * `step` of `total` is done; `preview` is a small picture as a data: URL, now and then. A training's has its `loss`.
   */
  | { event: 'progress'; data: { step: number; total: number; preview: string | null; loss?: number } }
  | { event: 'terminated'; data: T }
  | { event: 'deleted'; data: { id: string } };

export interface EventOptions {
  signal?: AbortSignal;
}

interface Message {
  event?: string;
  id?: string;
  data: string;
}

/** A stream sends something every 15 s; after this silence it counts as broken. */
const silenceMs = 45_000;

/** How often in a row a stream may break without news. */
const maxBrokenStreams = 5;

/** A stream that lived for this long was ended by a proxy, as some end every stream; opening another is no burden. */
const steadyMs = 10_000;

interface End {
  error?: unknown;
  /** When it last sent something, in milliseconds since it was opened. */
  lastedMs: number;
}

/**
 * Follows a record to its end over several streams: after a break the next one goes on after the last event. It gives
 * up when streams break early in a row without news; a place in the queue is news only if it has changed, since each
 * stream begins with it.
 * @throws DarkroomError, or the reason of an aborted signal.
 */
export async function* follow<T>(
  connection: Connection,
  path: string,
  { signal }: EventOptions = {},
): AsyncGenerator<TaskEvent<T>, void, undefined> {
  let lastId: string | undefined;
  let position: number | undefined;
  for (let broken = 0; ; broken++) {
    const { response } = await connection.open(path, {
      ...(signal && { signal }),
      headers: { Accept: 'text/event-stream', ...(lastId !== undefined && { 'Last-Event-ID': lastId }) },
    });
    if (response.status === 204) return;
    const end: End = { lastedMs: 0 };
    for await (const message of messagesOf(response, end)) {
      const event = { event: message.event, data: JSON.parse(message.data) as unknown } as TaskEvent<T>;
      const last = [lastId, position];
      lastId = message.id ?? lastId;
      if (event.event === 'queued') ({ position } = event.data);
      if (last[0] !== lastId || last[1] !== position) broken = 0;
      yield event;
      if (event.event === 'terminated' || event.event === 'deleted') return;
    }
    signal?.throwIfAborted();
    if (end.lastedMs >= steadyMs) broken = 0;
    if (broken >= maxBrokenStreams) throw connection.noAnswer(end.error ?? new Error('the stream ends at once'));
    await sleep(backOffMs(broken, 300, 8000), signal);
  }
}

/** How the response ends is written to `end`. */
async function* messagesOf({ body }: Response, end: End): AsyncGenerator<Message> {
  const reader = (body as ReadableStream<Uint8Array>).getReader();
  const openedAt = Date.now();
  const decoder = new TextDecoder();
  const arrived: Message[] = [];
  const parser = createParser({ onEvent: (message) => void arrived.push(message) });
  try {
    for (;;) {
      const { done, value } = await withinSilence(reader.read());
      end.lastedMs = Date.now() - openedAt;
      if (done) return;
      parser.feed(decoder.decode(value, { stream: true }));
      yield* arrived.splice(0);
    }
  } catch (error) {
    end.error = error;
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

async function withinSilence<T>(work: Promise<T>): Promise<T> {
  const over = new AbortController();
  const silence = sleep(silenceMs, over.signal).then(() => {
    throw new Error('the stream is silent');
  });
  try {
    return await Promise.race([work, silence]);
  } finally {
    over.abort();
    silence.catch(() => undefined);
  }
}
