import { EventSource } from 'eventsource';

/** What a browser's EventSource does, and what it was told. */
export interface EventClient {
  source: EventSource;
  /** Names of the events, in their order. */
  events: string[];
  /** Statuses of the answers to its requests, in their order. */
  statuses: number[];
}

/** Follows a stream with a client that comes back by itself. */
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
  for (const name of ['queued', 'progress', 'terminated', 'deleted'])
    source.addEventListener(name, () => void events.push(name));
  return { source, events, statuses };
}
