/** One server-sent event. */
export interface StreamEvent {
  id?: string;
  event: string;
  data: string;
}

/**
 * Reads server-sent events (HTML Standard, 9.2.6) from the pieces of a response. An `EventSource` cannot be used, because it sends no
 * `Authorization`. The service ends lines with a line feed, and sends one line of data an event.
 */
export async function* eventsOf(pieces: AsyncIterable<string>): AsyncGenerator<StreamEvent> {
  let rest = '';
  for await (const piece of pieces) {
    rest += piece;
    const blocks = rest.split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      const event = eventOf(block);
      if (event) yield event;
    }
  }
}

/** @returns undefined for a comment or a `retry`. */
function eventOf(block: string): StreamEvent | undefined {
  const fields = new Map<string, string>();
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':');
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1).replace(/^ /, ''));
  }
  const data = fields.get('data');
  if (data === undefined) return undefined;
  const id = fields.get('id');
  return { event: fields.get('event') ?? 'message', data, ...(id !== undefined && { id }) };
}

/** The text of a response, as it comes. */
export async function* piecesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield decoder.decode(value, { stream: true });
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
