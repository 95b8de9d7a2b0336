import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ServiceUnavailableError } from '@app/domain';
import { TokenCounter } from './token-counter';

/** Answers as the real one does, but never to an order that hangs. */
const thread = `
  const { parentPort } = require('node:worker_threads');
  parentPort.on('message', ({ id, texts }) => {
    while (texts[0] === 'hang');
    parentPort.postMessage({ id, chunks: [texts[0].length], chunkBytes: 75 });
  });`;

describe(TokenCounter.name, () => {
  const { threadFile, timeMs } = TokenCounter;
  const order = (text: string) => ({ modelFolder: '', modelHash: '', texts: [text], weighting: false });
  let folder: string;
  let counter: TokenCounter;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'token-counter-'));
    TokenCounter.threadFile = join(folder, 'thread.js');
    await writeFile(TokenCounter.threadFile, thread);
  });

  beforeEach(() => {
    counter = new TokenCounter();
  });

  afterEach(async () => {
    TokenCounter.timeMs = timeMs;
    await counter.onApplicationShutdown();
  });

  afterAll(async () => {
    TokenCounter.threadFile = threadFile;
    await rm(folder, { recursive: true });
  });

  it('lets keys take turns, and refuses a key that has too much that waits', async () => {
    const ended: string[] = [];
    const of = (key: string) => counter.count(key, order('text')).then(() => ended.push(key));
    const all = Array.from({ length: 101 }, () => of('many'));
    await expect(of('many')).rejects.toMatchObject({ kind: 'tooMany', code: 'QueueFull' });
    await Promise.all([...all, of('few')]);
    expect(ended.indexOf('few')).toBeLessThan(4);
  });

  it('ends a thread that takes too long, and starts another', async () => {
    TokenCounter.timeMs = 300;
    const hangs = counter.count('a', order('hang'));
    const next = counter.count('b', order('text'));
    await new Promise(setImmediate);
    // The limit is read when an order begins, and the next order has to start a thread within it.
    TokenCounter.timeMs = timeMs;
    await expect(hangs).rejects.toThrow(ServiceUnavailableError);
    expect(await next).toMatchObject({ chunks: [4], chunkBytes: 75 });
  });
});
