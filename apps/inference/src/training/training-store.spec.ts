import { Readable } from 'node:stream';
import { JsonLogger } from '@app/observability';
import type { ImageStorage, StoredObject } from '@app/storage';
import { type Trainings, trainingFolder } from '@app/tasks';
import type { DataSource } from 'typeorm';
import { TrainingStore } from './training-store';

class MemoryStorage {
  readonly files = new Map<string, Uint8Array>();
  /** Called once, when files have been listed. */
  onListed = (): void => undefined;

  async write(key: string, data: Uint8Array): Promise<void> {
    this.files.set(key, data);
  }

  async read(key: string) {
    const data = this.files.get(key);
    return data && { stream: Readable.from([Buffer.from(data)]), bytes: data.length };
  }

  async removeAll(prefix: string): Promise<void> {
    for (const key of [...this.files.keys()]) if (key.startsWith(prefix)) this.files.delete(key);
  }

  async *list(prefix: string): AsyncIterable<StoredObject> {
    const found = [...this.files].filter(([key]) => key.startsWith(prefix));
    for (const [key, { length: bytes }] of found) yield { key, bytes, modifiedAt: new Date() };
    const { onListed } = this;
    this.onListed = () => undefined;
    onListed();
  }
}

describe(TrainingStore.name, () => {
  let storage: MemoryStorage;
  let store: TrainingStore;
  const model = 'abc';

  beforeEach(() => {
    storage = new MemoryStorage();
    const logger = new JsonLogger('test', 'silent');
    store = new TrainingStore(storage as unknown as ImageStorage, {} as DataSource, {} as Trainings, logger);
  });

  const keep = (step: number, { attempt = 1, round = 0 } = {}) => {
    const state = { round, step, steps: 500, loss: 0, computeMs: 0, checkpoint: Buffer.from(`${round}-${step}`) };
    return store.keep({ id: 'one', attempt }, state, model);
  };
  const latest = async (hash = model) => (await store.latest('one', hash))?.checkpoint.toString();

  it('has the state that is furthest on, and no more of those before', async () => {
    for (const step of [50, 100]) await keep(step);
    await keep(0, { round: 1 });
    expect(await latest()).toBe('1-0');
    expect(storage.files.size).toBe(1);
  });

  it('passes over states of another model and of another format', async () => {
    await keep(50);
    expect(await latest('def')).toBeUndefined();
    await storage.write(`${trainingFolder('one')}/0-100-1-v0-${model}.safetensors`, Buffer.from('old'));
    await storage.write(`${trainingFolder('one')}/0-150-1-12345.safetensors`, Buffer.from('older'));
    expect(await latest()).toBe('0-50');
  });

  it('has the next state if the one that it reads was just replaced', async () => {
    await keep(50);
    storage.onListed = () => {
      storage.files.clear();
      void keep(100, { attempt: 2 });
    };
    expect(await latest()).toBe('0-100');
  });
});
