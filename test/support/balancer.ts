import { createServer, request } from 'node:http';
import { onLoopback } from './loopback';

/** A balancer before an api: after `silentMs` without a byte it answers 504 and closes its connection to the api. */
export async function startBalancer(
  apiUrl: string,
  silentMs: number,
): Promise<{ url: string; gaveUp: Promise<void>; stop: () => Promise<void> }> {
  let tell: () => void = () => undefined;
  const gaveUp = new Promise<void>((resolve) => (tell = resolve));
  const server = createServer((incoming, answer) => {
    const { method, headers, url } = incoming;
    const passed = request(`${apiUrl}${url}`, { method, headers, timeout: silentMs, agent: false });
    passed.on('timeout', () => {
      passed.destroy();
      answer.writeHead(504).end('<html>504</html>');
      tell();
    });
    passed.on('error', () => answer.destroy());
    passed.on('response', (reply) => {
      answer.writeHead(reply.statusCode!, reply.headers);
      reply.on('error', () => answer.destroy()).pipe(answer);
    });
    incoming.pipe(passed);
  });
  const { url, close: stop } = await onLoopback(server);
  return { url, gaveUp, stop };
}
