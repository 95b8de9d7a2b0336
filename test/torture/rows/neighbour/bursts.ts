import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { plainBody } from './first-key';
import { neighbourRow } from './neighbour-row';

const path = '/v1/sd/text-to-image';
const bytes = 990_000;
const bodiesAtOnce = 40;
/** Time until all but the last bytes have arrived. */
const settleMs = 1_500;

/** Objects with twenty unique fields, as many as a body may have: nothing takes longer to parse. */
function manyNames(): Buffer {
  let count = 0;
  const object = (): string => `{${Array.from({ length: 20 }, () => `"${(count++).toString(36)}":1`).join()}}`;
  return Buffer.from(`{"prompt":"x","metadata":[${Array.from({ length: 990 }, object).join()}]}`);
}

/** Bodies that are complete at the same moment. */
export const bursts = neighbourRow({
  name: 'bursts',
  title: '40 bodies whose last bytes come at once',
  async prepare({ site, size, first }) {
    const agent = new Agent({ keepAlive: true, maxSockets: Infinity });
    site.finally(async () => agent.destroy());
    const kinds = [plainBody(bytes), Buffer.from(`[${'1,'.repeat(bytes / 2)}1]`), manyNames()];
    const begin = (body: Buffer): ClientRequest => {
      const headers = {
        authorization: `Bearer ${first.caller.token}`,
        'content-type': 'application/json',
        'content-length': String(body.length),
      };
      const sent = request(first.url + path, { method: 'POST', agent, headers });
      sent.write(body.subarray(0, -1));
      return sent;
    };
    const answered = async (sent: ClientRequest): Promise<number> => {
      const [reply] = (await once(sent, 'response')) as [IncomingMessage];
      reply.resume();
      await once(reply, 'end');
      return reply.statusCode ?? 0;
    };
    const burst = async (turn: number): Promise<string | undefined> => {
      const body = kinds[turn % kinds.length];
      const all = Array.from({ length: bodiesAtOnce }, () => begin(body));
      const answers = Promise.all(all.map((sent) => answered(sent).catch(() => 0)));
      await delay(settleMs);
      for (const sent of all) sent.end(body.subarray(-1));
      const odd = (await answers).find((status) => status !== 400 && status !== 429);
      return odd === undefined ? undefined : `a body is answered ${odd || 'by nothing'}`;
    };
    // In the short form, each kind of body comes in one burst.
    const everyMs = size === 'long' ? 4_000 : 2_000;
    const rate = { atOnce: 1, everyMs };
    return {
      lastsMs: size === 'long' ? 13_000 : kinds.length * everyMs - 500,
      harmless: {
        name: 'bodies one after another',
        ...rate,
        send: async () => {
          for (let sent = 0; sent < bodiesAtOnce; sent++)
            await first.expectRefusal({ method: 'POST', path, body: kinds[0] });
          return undefined;
        },
      },
      hostile: [{ name: 'bodies at once', ...rate, send: burst }],
    };
  },
});
