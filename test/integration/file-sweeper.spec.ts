import { Collection, Image, newIdentifier, Style } from '@app/domain';
import { FileSweeper } from '../../apps/inference/src/sweeper/file-sweeper';
import type { InferenceBench } from '../support/inference';
import { createInferenceBench } from '../support/inference';
import { insertFinetune, insertPicture, insertPrompt } from '../support/prompt-rows';

const ago = (seconds: number): Date => new Date(Date.now() - seconds * 1000);

describe(FileSweeper.name, () => {
  let bench: InferenceBench;
  let files: FileSweeper;

  beforeEach(async () => {
    bench = await createInferenceBench();
    files = new FileSweeper(bench.storage, bench.dataSource, bench.logger);
  });
  afterEach(() => bench.close());

  /** Stores a file with the given age. */
  async function file(key: string, date = ago(3600)): Promise<string> {
    await bench.storage.write(key, Buffer.from('x'));
    await bench.backEnds.storage.age(key, date);
    return key;
  }

  it('removes old files of attempts without a row', async () => {
    await file(`${newIdentifier()}/1/0.png`);
    const { id } = await bench.addTask({ status: 'succeeded', attempt: 2 });
    await file(`${id}/1/0.png.0a1b2c.part`);
    const kept = await file(`${id}/2/0.png`);
    await bench.dataSource.manager.insert(Image, {
      id: newIdentifier(),
      taskId: id,
      index: 0,
      token: newIdentifier(),
      storageKey: `${id}/2/0.png`,
      contentType: 'image/png',
      width: 1,
      height: 1,
      bytes: 1,
    });
    expect(await files.sweep()).toBe(2);
    expect(await bench.backEnds.storage.contents()).toEqual([kept]);
  });

  it('keeps recent files, those of tasks being drawn, and files other than pictures', async () => {
    const { id } = await bench.addTask({ status: 'processing', attempt: 3, heartbeatAt: new Date() });
    const kept = [
      await file(`${newIdentifier()}/1/0.png`, ago(60)),
      await file(`${id}/3/0.png`),
      await file(`thumbnails/${id}/3/0.png`),
      await file(`thumbnails/${newIdentifier()}.png`),
      await file(`weights/${newIdentifier()}/1/lora.safetensors`),
    ];
    expect(await files.sweep()).toBe(0);
    expect(await bench.backEnds.storage.contents()).toEqual(kept.sort());
  });

  it('removes old thumbnails that neither a Prompt nor a Style needs', async () => {
    const { manager } = bench.dataSource;
    const finetune = await insertFinetune(manager, newIdentifier());
    const { id } = await insertPrompt(manager, finetune);
    await insertPicture(manager, bench.storage, id);
    const [style, collectionId] = [newIdentifier(), newIdentifier()];
    const [gone, kept] = [newIdentifier(), newIdentifier()];
    const thumbnailKey = await file(`thumbnails/${kept}/2/0.png`);
    await manager.insert(Collection, {
      id: collectionId,
      ownerId: finetune.ownerId,
      name: '',
      createdAt: new Date(),
    });
    const row = { id: style, ownerId: finetune.ownerId, collectionId, name: '', template: '', createdAt: new Date() };
    await manager.insert(Style, { ...row, sourcePromptId: kept, thumbnailKey });
    for (const key of [`${kept}/1/0.png`, `${gone}/1/0.png`, `${id}/2/0.png`, `${id}/1/0.png.0a1b.part`])
      await file(`thumbnails/${key}`);
    for (const key of [`${id}/1/0.png`, `thumbnails/${id}/1/0.png`]) await bench.backEnds.storage.age(key, ago(3600));
    await files.sweep();
    expect(await bench.backEnds.storage.contents()).toEqual(
      [`${id}/1/0.png`, `thumbnails/${id}/1/0.png`, `thumbnails/${id}/1/0.png.0a1b.part`, thumbnailKey].sort(),
    );
  });

  it('has nothing to do with an empty storage', async () => {
    expect(await files.sweep()).toBe(0);
  });
});
