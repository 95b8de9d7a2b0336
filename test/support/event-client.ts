import { EventSource } from 'eventsource';

/** Events that a browser's EventSource received. */
export interface EventClient {
  source: EventSource;
  /** Names, in order. */
  events: string[];
  /** Of the responses, in order. */
  statuses: number[];
}

/** Follows a stream with a client that reconnects by itself. */
export function openEventClient(url: string, token: string): EventClient {
  const statuses: number[] = [];
  const source = new EventSource(url, {
    fetch: async (input, init) => {
      const response = await fetch(input, { ...init, headers: { ...init.headers, authorization: `Bearer ${token}` } });
      statuses.push(response.status);
      return response;
    },
  });
  const events: string[] = [];
  for (const name of ['queued', 'started', 'progress', 'terminated', 'deleted'])
    source.addEventListener(name, () => void events.push(name));
  return { source, events, statuses };
}
