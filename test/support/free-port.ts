import { once } from 'node:events';
import { createServer } from 'node:net';

// Below the ports that the system gives to whoever asks for any: between the look and the start nobody else gets it by chance.
const first = 10_000;
const end = 30_000;
/** How far apart test processes begin, which run at the same time and have neighbouring ids. */
const stride = 199;
let next = first + ((process.pid * stride) % (end - first));

/** A port of the loopback address that nobody listens on, and that this process has not given out before. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = next;
    next = port + 1 < end ? port + 1 : first;
    const probe = createServer().listen(port, '127.0.0.1');
    try {
      await once(probe, 'listening');
    } catch {
      // Somebody listens there.
      continue;
    }
    probe.close();
    await once(probe, 'close');
    return port;
  }
}
