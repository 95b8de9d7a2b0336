import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

type Input = string | { image_url: { url: string } };

/** An operator's moderation, in OpenAI's shape: flags texts that have the word "flagged", and the pictures it is told. */
export interface ModerationServer {
  url: string;
  /** What it was asked about, and by whom. */
  asked: { inputs: Input[]; keys: (string | undefined)[] };
  /** Answers nothing, or nonsense. */
  behaviour: {
    fault?: 'silent' | 'broken' | undefined;
    flagsPicture?: (url: string) => boolean;
    /** In place of those that it knows. */
    categories?: unknown;
    /** Awaited before it answers. */
    onAsked?: () => Promise<unknown>;
  };
  close(): Promise<void>;
}

export async function startModeration(): Promise<ModerationServer> {
  const asked: ModerationServer['asked'] = { inputs: [], keys: [] };
  const behaviour: ModerationServer['behaviour'] = {};
  const verdict = (input: Input) => {
    const flagged =
      typeof input === 'string' ? input.includes('flagged') : (behaviour.flagsPicture?.(input.image_url.url) ?? false);
    const { categories = { violence: flagged, 'self-harm': false } } = behaviour;
    return { flagged, categories };
  };
  const server = createServer((request, response) => {
    const answer = async (): Promise<void> => {
      const { input } = (await json(request)) as { input: Input[] };
      await behaviour.onAsked?.();
      asked.inputs.push(...input);
      asked.keys.push(request.headers.authorization);
      if (behaviour.fault === 'silent') return;
      const results = behaviour.fault === 'broken' ? [] : input.map(verdict);
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ id: 'modr-1', results }));
    };
    answer().catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    ...{ asked, behaviour },
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/moderations`,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
