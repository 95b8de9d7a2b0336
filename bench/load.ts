import { connect, type Socket } from 'node:net';

/** Parameters of one measurement. */
export interface Load {
  port: number;
  method: 'GET' | 'POST';
  /** Requests use these paths and keys in turn. */
  paths: string[];
  tokens: string[];
  body?: string;
  connections: number;
  ms: number;
}

/** The result of one measurement. */
export interface LoadResult {
  perSecond: number;
  /** Median and 99th percentile in milliseconds. */
  p50: number;
  p99: number;
  /** Responses other than success, by status. */
  failures: Record<string, number>;
}

/**
 * Sends requests over keep-alive connections, one at a time on each, for a given time. It writes prepared bytes and
 * only searches for the end of each response, to leave the processor to the servers.
 */
async function run(load: Load): Promise<LoadResult> {
  const requests = prepare(load);
  const times: number[] = [];
  const failures: Record<string, number> = {};
  const endAt = performance.now() + load.ms;
  let turn = 0;
  const startedAt = performance.now();
  await Promise.all(
    Array.from({ length: load.connections }, async () => {
      const socket = connect(load.port, '127.0.0.1');
      socket.setNoDelay(true);
      await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
      while (performance.now() < endAt) {
        const sentAt = performance.now();
        const status = await ask(socket, requests[turn++ % requests.length]);
        times.push(performance.now() - sentAt);
        if (status >= 300) failures[status] = (failures[status] ?? 0) + 1;
      }
      socket.destroy();
    }),
  );
  const seconds = (performance.now() - startedAt) / 1000;
  times.sort((a, b) => a - b);
  const at = (share: number) => times[Math.min(times.length - 1, Math.floor(times.length * share))];
  return { perSecond: times.length / seconds, p50: at(0.5), p99: at(0.99), failures };
}

/** Enough requests to use every path and every key in turn. */
function prepare({ method, paths, tokens, body, port }: Load): Buffer[] {
  const count = Math.max(paths.length, tokens.length);
  return Array.from({ length: count }, (_, i) => {
    const lines = [
      `${method} ${paths[i % paths.length]} HTTP/1.1`,
      `host: 127.0.0.1:${port}`,
      `authorization: Bearer ${tokens[i % tokens.length]}`,
      ...(body === undefined ? [] : ['content-type: application/json', `content-length: ${Buffer.byteLength(body)}`]),
    ];
    return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body ?? ''}`);
  });
}

/** @returns the status, once the response is complete */
function ask(socket: Socket, request: Buffer): Promise<number> {
  return new Promise((resolve, reject) => {
    let answer = '';
    const settle = (act: () => void): void => {
      socket.off('data', read).off('close', lost);
      act();
    };
    const read = (chunk: Buffer): void => {
      answer += chunk.toString('latin1');
      const headEnd = answer.indexOf('\r\n\r\n');
      if (headEnd < 0) return;
      const length = /\r\ncontent-length: (\d+)/i.exec(answer.slice(0, headEnd));
      if (!length) return settle(() => reject(new Error(`An answer without a length: ${answer.slice(0, 200)}`)));
      if (answer.length < headEnd + 4 + Number(length[1])) return;
      settle(() => resolve(Number(answer.slice(9, 12))));
    };
    const lost = (): void => settle(() => reject(new Error('The server closed the connection.')));
    socket.on('data', read).on('close', lost);
    socket.write(request);
  });
}

process.on('message', (load: Load) => {
  run(load).then(
    (result) => process.send?.({ result }),
    (error: Error) => process.send?.({ error: error.message }),
  );
});
process.once('disconnect', () => process.exit());
