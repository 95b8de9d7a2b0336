import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { neighbourRow } from './neighbour-row';

const requestsAtOnce = 1_000;
const openMs = 1_500;

/** Thousands of requests without a key on a few connections, whose responses nobody reads. */
export const pipelining = neighbourRow({
  name: 'pipelining',
  title: '1,000 requests at once on each of three connections',
  async prepare({ first }) {
    const { hostname, port } = new URL(first.url);
    const strangers = { authorization: `Bearer ${first.caller.token.slice(0, -1)}-` };
    const kinds: [path: string, headers: Record<string, string>][] = [
      [`/images/${'a'.repeat(24)}.png`, {}],
      ['/v1/models', {}],
      ['/v1/models', strangers],
      ['/openapi.json', {}],
      ['/health/live', {}],
    ];
    const flood = async (turn: number): Promise<undefined> => {
      const [path, headers] = kinds[turn % kinds.length];
      const lines = Object.entries({ host: 'darkroom', ...headers }).map(([name, value]) => `${name}: ${value}`);
      const socket = connect(Number(port), hostname).on('error', () => undefined);
      socket.write(`GET ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`.repeat(requestsAtOnce));
      await delay(openMs);
      socket.destroy();
    };
    const read = async (turn: number): Promise<undefined> => {
      const [path, headers] = kinds[turn % kinds.length];
      for (const end = performance.now() + openMs; performance.now() < end;)
        await fetch(first.url + path, { headers }).then((answer) => answer.arrayBuffer());
    };
    const rate = { atOnce: 3, everyMs: 2_000 };
    return {
      harmless: { name: 'requests one after another', ...rate, send: read },
      hostile: [{ name: 'requests at once', ...rate, send: flood }],
    };
  },
});
