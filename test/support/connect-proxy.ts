import { createServer } from 'node:http';
import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';

/** A proxy that tunnels by CONNECT, as those of companies do, and records the targets. */
export async function startConnectProxy(): Promise<{ url: string; asked: string[]; close: () => Promise<void> }> {
  const asked: string[] = [];
  const server = createServer((_, response) => response.writeHead(405).end());
  server.on('connect', (request, socket) => {
    asked.push(request.url!);
    const [host, port] = request.url!.split(':');
    const through = connect(Number(port), host, () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      through.pipe(socket).pipe(through);
    });
    for (const end of [through, socket]) end.on('error', () => [through, socket].forEach((each) => each.destroy()));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    async close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
