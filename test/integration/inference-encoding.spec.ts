import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newIdentifier } from '@app/domain';
import { FileImageStorage } from '@app/storage';
import { TaskAbortedError } from '../../apps/inference/src/engine-client/task-errors';
import { EncodingTurns } from '../../apps/inference/src/pictures/encoding-turns';
import type { PictureParameters } from '../../apps/inference/src/pictures/image-encoder';
import { PictureCredentials } from '../../apps/inference/src/pictures/picture-credentials';
import { PictureStore } from '../../apps/inference/src/pictures/picture-store';

describe(PictureStore.name, () => {
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-pictures-'));
  const logger = { log: () => undefined, warn: () => undefined };
  const store = new PictureStore(
    new FileImageStorage(folder),
    new PictureCredentials({}, logger),
    new EncodingTurns(1),
  );
  const never = new AbortController().signal;
  const drawn = {
    index: 0,
    picture: { data: new Uint8Array(64 * 64 * 3).fill(100), width: 64, height: 64 },
    parameters: {} as PictureParameters,
    isFirst: true,
  };

  afterAll(() => rmSync(folder, { recursive: true }));

  const taskOf = (owner: string, highResolution = false) => ({
    id: newIdentifier(),
    kind: 'generation' as const,
    attempt: 1,
    ownerId: owner,
    outputFormat: 'png' as const,
    highResolution,
    inputs: null,
  });

  it('encodes no picture whose task is given up before its turn', async () => {
    const task = taskOf('somebody');
    const first = store.save(taskOf('somebody', true), drawn, never);
    const stop = new AbortController();
    const second = store.save({ ...task, highResolution: true }, drawn, stop.signal);
    const refused = expect(second).rejects.toThrow(TaskAbortedError);
    stop.abort();
    await Promise.all([first, refused]);
    expect(existsSync(join(folder, task.id))).toBe(false);
  });

  it('lets no picture of ordinary size wait for a large one', async () => {
    const order: string[] = [];
    const large = [1, 2, 3, 4, 5].map(() =>
      store.save(taskOf('somebody', true), drawn, never).then(() => order.push('large')),
    );
    await store.save(taskOf('another'), drawn, never).then(() => order.push('ordinary'));
    await Promise.all(large);
    expect(order.indexOf('ordinary')).toBeLessThan(2);
  });
});
