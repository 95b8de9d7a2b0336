import { once } from 'node:events';
import { connect, createServer } from 'node:net';

// Below the system's range of ephemeral ports, so that no other process gets the port by chance before it is used.
const first = 10_000;
const end = 30_000;
/** Distance between the first ports of test processes, which run in parallel and have similar ids. */
const stride = 199;
let next = first + ((process.pid * stride) % (end - first));

/** A free loopback port that this process has not used before. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = next;
    next = port + 1 < end ? port + 1 : first;
    const probe = createServer().listen(port, '127.0.0.1');
    try {
      await once(probe, 'listening');
    } catch {
      // The port is in use.
      continue;
    }
    probe.close();
    await once(probe, 'close');
    return port;
  }
}

/** Whether something listens at a loopback port. */
export async function isListening(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
