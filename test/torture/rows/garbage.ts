import { connect } from 'node:net';
import { audit, comeToRest } from '../audit';
import { quantile, type Row, type Size } from '../row';
import type { ServiceProcess } from '../../support/service-process';
import { preload, type Site } from '../site';
import { anyRequest } from './any-request';

/** A truncated request gets no response; it counts as unanswered after this time. */
const patienceMs = 3_000;
const p99LimitMs = 200;
/** Memory counts as released if at most this much remains. */
const memoryLimit = 1.1;

/** Requests nobody should send: bodies, headers, paths, and bytes that are not HTTP. */
export const garbage: Row = {
  name: 'garbage',
  title: 'garbage requests',
  sharedSite: 'sound workers',
  async run(site, size) {
    const requests = size === 'long' ? 10_000 : 200;
    // Retained memory counts, not what has not been collected yet.
    const api = await site.anyApi({ nodeOptions: preload('collect.cjs') });
    const caller = await site.newCaller(api);
    const { port } = new URL(api.url);
    const durationsMs: number[] = [];
    const broken: string[] = [];
    const sendMany = async (count: number): Promise<void> => {
      let left = count;
      const one = async (): Promise<void> => {
        while (left-- > 0) {
          const { elapsedMs, problem } = await send(site, Number(port), anyRequest(caller.token));
          if (elapsedMs !== undefined) durationsMs.push(elapsedMs);
          if (problem) broken.push(problem);
        }
      };
      await Promise.all(Array.from({ length: 8 }, one));
    };

    // Code is compiled and pools are filled before memory is measured.
    if (size === 'long') await sendMany(Math.ceil(requests / 4));
    durationsMs.length = 0;
    const before = await heldBytes(api.process, size);
    await sendMany(requests);
    const uncollected = api.process.residentBytes();
    const after = await heldBytes(api.process, size);
    const p99Ms = Math.round(quantile(durationsMs, 0.99));
    const problems = broken.slice(0, 3);
    if (!api.process.isRunning) problems.push('the api ended');
    // A short run on a busy machine says little about time and memory, so they are reported but not checked.
    if (size === 'long' && p99Ms > p99LimitMs) problems.push(`p99 is ${p99Ms} ms`);
    if (size === 'long' && after > before * memoryLimit)
      problems.push(`memory went from ${megabytes(before)} to ${megabytes(after)} MB`);
    await site.anyWorkers(1);
    await caller.createMany(2);
    problems.push(...(await comeToRest(site)));
    return audit(site, {
      problems,
      // A valid request can be among them, and name a model or size that is rejected only when it is drawn.
      mayFail: /./,
      notes: {
        requests,
        'p99 ms': p99Ms,
        'memory MB': `${megabytes(before)} -> ${megabytes(after)}, ${megabytes(uncollected)} between`,
      },
    });
  },
};

/** Memory in use after a garbage collection; in the short form, which does not judge it, without one. */
function heldBytes(process: ServiceProcess, size: Size): Promise<number> | number {
  return size === 'long' ? process.heldBytes() : process.residentBytes();
}

const megabytes = (bytes: number): number => Math.round(bytes / 2 ** 20);

/** Sends one and notes its answer. @returns how long an answer took, if there was one, and what is wrong with it. */
async function send(site: Site, port: number, request: Buffer): Promise<{ elapsedMs?: number; problem?: string }> {
  const startedAt = performance.now();
  const reply = await rawReply(port, request);
  const status = Number(/^(?:HTTP\/1\.1 100 [^]*?\r\n\r\n)?HTTP\/1\.1 (\d{3})/.exec(reply)?.[1] ?? 0);
  const elapsedMs = performance.now() - startedAt;
  site.ledger.answered(status, new Headers(), reply);
  const made = status === 201 ? /"id":"([\w-]{24})"/.exec(reply)?.[1] : undefined;
  if (made && reply.includes('"num_generations"')) site.ledger.acknowledge(made, false);
  const problem = `${request.subarray(0, 200).toString('latin1')} -> ${reply.slice(0, 200)}`;
  return { ...(status > 0 && { elapsedMs }), ...(status >= 500 && { problem }) };
}

/** The response until the connection ended; we close the connection of a request that stops in the middle. */
function rawReply(port: number, request: Buffer): Promise<string> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    // The socket is not half-closed: Node's server drops a request whose sender has ended its side.
    const socket = connect(port, '127.0.0.1', () => socket.write(request));
    const done = (): void => {
      socket.destroy();
      resolve(Buffer.concat(chunks).toString('latin1'));
    };
    socket.setTimeout(patienceMs, done);
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', done);
    socket.on('close', done);
  });
}
