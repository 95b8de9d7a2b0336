/** One server-sent event, with its data parsed as JSON. */
export interface ServerEvent {
  event: string;
  id?: string;
  data: unknown;
}

/** An open event stream. */
export interface OpenEvents {
  /** Undefined when the server has ended the stream. */
  next: () => Promise<ServerEvent | undefined>;
  close: () => void;
}

/** Follows a stream as a browser's EventSource does, with an Authorization header. */
export async function openEvents(
  url: string,
  token: string,
  headers: Record<string, string> = {},
): Promise<OpenEvents> {
  const abort = new AbortController();
  const response = await fetch(url, {
    headers: { authorization: `Bearer ${token}`, ...headers },
    signal: abort.signal,
  });
  if (response.status !== 200 || !response.body) throw new Error(`The stream was refused with ${response.status}.`);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  const next = async (): Promise<ServerEvent | undefined> => {
    for (;;) {
      const end = text.indexOf('\n\n');
      if (end >= 0) {
        const lines = text.slice(0, end).split('\n');
        text = text.slice(end + 2);
        const event = parse(lines);
        if (event) return event;
      } else {
        const { done, value } = await reader.read();
        if (done) return undefined;
        text += value;
      }
    }
  };
  return { next, close: () => abort.abort() };
}

/** Comments and the retry hint are no events. */
function parse(lines: readonly string[]): ServerEvent | undefined {
  const fields = new Map(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]));
  const event = fields.get('event');
  if (event === undefined) return undefined;
  const id = fields.get('id');
  return { event, ...(id !== undefined && { id }), data: JSON.parse(fields.get('data') ?? 'null') };
}
