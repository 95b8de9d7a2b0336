import { eventsOf } from './event-stream';

async function read(...pieces: string[]) {
  const events = [];
  for await (const event of eventsOf(toAsync(pieces))) events.push(event);
  return events;
}

async function* toAsync(pieces: string[]) {
  yield* pieces;
}

describe(eventsOf.name, () => {
  it('reads events whose text comes in any pieces', async () => {
    const text =
      'retry: 2000\n\n: still here\n\nid: 1-2\nevent: progress\ndata: {"step":2}\n\nevent: queued\ndata: {}\n\n';
    const expected = [
      { id: '1-2', event: 'progress', data: '{"step":2}' },
      { event: 'queued', data: '{}' },
    ];
    await expect(read(text)).resolves.toEqual(expected);
    await expect(read(...text)).resolves.toEqual(expected);
  });

  it('does not take the beginning of an event for one', async () => {
    await expect(read('event: progress\ndata: {"st')).resolves.toEqual([]);
  });
});
