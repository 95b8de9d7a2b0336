import { createParser } from 'eventsource-parser';
import type { Connection } from './connection.ts';
import { backOffMs, sleep } from './sleep.ts';

/** What happens to a Generation or a Prompt, up to its end. `T` is the record as it is then. */
export type TaskEvent<T> =
  /** `position` are drawn before it. */
  | { event: 'queued'; data: { position: number } }
  /** `step` of `total` is done; `preview` is a small picture as a data: URL, now and then. */
  | { event: 'progress'; data: { step: number; total: number; preview: string | null } }
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

/** A stream sends something every 15 s; one that is silent for so long is broken. */
const silenceMs = 45_000;

/** How often in a row a stream may end without an event. */
const maxEmptyStreams = 5;

/**
 * Follows a record to its end, over as many streams as it takes: one that breaks goes on after the last event.
 * @throws DarkroomError, or the reason of an aborted signal.
 */
export async function* follow<T>(
  connection: Connection,
  path: string,
  { signal }: EventOptions = {},
): AsyncGenerator<TaskEvent<T>, void, undefined> {
  let lastId: string | undefined;
  for (let empty = 0; ; empty++) {
    const { response } = await connection.open(path, {
      ...(signal && { signal }),
      headers: { Accept: 'text/event-stream', ...(lastId !== undefined && { 'Last-Event-ID': lastId }) },
    });
    if (response.status === 204) return;
    const failure: { error?: unknown } = {};
    for await (const message of messagesOf(response, failure)) {
      empty = 0;
      lastId = message.id ?? lastId;
      const event = { event: message.event, data: JSON.parse(message.data) as unknown } as TaskEvent<T>;
      yield event;
      if (event.event === 'terminated' || event.event === 'deleted') return;
    }
    signal?.throwIfAborted();
    if (empty >= maxEmptyStreams) throw connection.noAnswer(failure.error ?? new Error('the stream ends at once'));
    await sleep(backOffMs(empty, 300, 8000), signal);
  }
}

/** The events of one response; an error that ends it is told to `failure`. */
async function* messagesOf({ body }: Response, failure: { error?: unknown }): AsyncGenerator<Message> {
  const reader = (body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  const arrived: Message[] = [];
  const parser = createParser({ onEvent: (message) => void arrived.push(message) });
  try {
    for (;;) {
      const { done, value } = await withinSilence(reader.read());
      if (done) return;
      parser.feed(decoder.decode(value, { stream: true }));
      yield* arrived.splice(0);
    }
  } catch (error) {
    failure.error = error;
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
