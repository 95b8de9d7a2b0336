import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Finetune, newIdentifier } from '@app/domain';
import type { ImageStorage } from '@app/storage';
import { ModelResolver } from '../../apps/inference/src/drawing/model-resolver';
import { TaskAbortedError, EngineBrokenError } from '../../apps/inference/src/engine-client/task-errors';
import { createInferenceBench } from '../support/inference';
import { newTask } from '../support/new-task';
import { bytesOf } from '../support/stored-objects';
import { ofSuite } from '../support/of-suite';
import { startWorker } from '../support/worker';

const lora = join(__dirname, '../golden/models/lora/zwx-robot-kohya.safetensors');

describe("a Fine-Tune's weights", () => {
  const bench = ofSuite(createInferenceBench);
  const ownerId = newIdentifier();
  const finetuneId = newIdentifier();

  beforeAll(async () => {
    const content = await readFile(lora);
    const weightsKey = 'weights/robot.safetensors';
    await bench.storage.write(weightsKey, content);
    const weightsHash = createHash('sha256').update(content).digest('hex');
    const weights = { weightsKind: 'lora', weightsHash, weightsKey, weightsScale: 0.5 } as const;
    const rest = {
      name: 'robot',
      token: 'zwx',
      model: 'shapes-bundled',
      status: 'ready',
      createdAt: new Date(),
    } as const;
    await bench.dataSource.manager.insert(Finetune, { id: finetuneId, ownerId, ...weights, ...rest });
  });

  const accept = async (): Promise<string> => {
    const task = newTask(ownerId, { finetuneId, model: 'shapes-bundled', steps: 1, seed: 7 });
    await bench.intake.insert({ ownerId, maxQueued: 0, tasks: [task] });
    return task.id;
  };
  const change = (values: Partial<Finetune>) => bench.dataSource.manager.update(Finetune, { id: finetuneId }, values);
  /** The scale in its picture, and how its record names the weights. */
  const drawnWith = async (id: string): Promise<[scale: number, servedBy: string | null]> => {
    const { status, servedBy, images } = await bench.terminated(id);
    expect(status).toBe('succeeded');
    const file = (await bytesOf(bench.storage, images[0].storageKey)).toString('latin1');
    return [Number(/"weights_scale":([\d.]+)/.exec(file)?.[1]), servedBy];
  };

  it('keep the scale with which the task was accepted, unless they were replaced', async () => {
    const early = await accept();
    await change({ weightsScale: 1.5 });
    const late = await accept();
    const unknown = await bench.addTask({ ownerId, finetuneId, model: 'shapes-bundled', steps: 1 });
    const other = await accept();
    await bench.dataSource.query(
      `UPDATE drawings SET weights_hash = 'of other weights', weights_scale = 2 WHERE id = $1`,
      [other],
    );
    await startWorker(bench);
    const drawn = await Promise.all([early, late, unknown.id, other].map(drawnWith));
    expect(drawn.map(([scale]) => scale)).toEqual([0.5, 1.5, 1.5, 1.5]);
    const [first, ...rest] = drawn.map(([, servedBy]) => servedBy);
    expect(new Set(rest)).toEqual(new Set([rest[0]]));
    expect(first).not.toBe(rest[0]);
  });

  it('are combined in a Generation, each with its scale', async () => {
    const { id, ...own } = await bench.dataSource.manager.findOneByOrFail(Finetune, { id: finetuneId });
    const otherId = newIdentifier();
    await bench.dataSource.manager.insert(Finetune, { ...own, seq: undefined, id: otherId });
    const draw = async (finetunes: { id: string; scale: number }[]) => {
      const task = newTask(ownerId, { model: 'shapes-bundled', steps: 1, seed: 7, inputs: { finetunes } });
      await bench.intake.insert({ ownerId, maxQueued: 0, tasks: [task] });
      const { servedBy, images, error } = await bench.terminated(task.id);
      const file = images.map(({ storageKey }) => bytesOf(bench.storage, storageKey));
      return { servedBy, error, file: (await Promise.all(file)).join('') };
    };
    const both = await draw([
      { id, scale: 0.5 },
      { id: otherId, scale: 1 },
    ]);
    expect(both.servedBy).toMatch(/^shapes-bundled@[0-9a-f]{12}\+[0-9a-f]{12}\+[0-9a-f]{12}$/);
    expect(both.file).toContain(`{"id":"${id}","weights_hash":"${own.weightsHash}","weights_scale":0.5}`);
    expect((await draw([{ id, scale: 0.5 }])).servedBy).toBe(both.servedBy?.split('+').slice(0, 2).join('+'));
    await bench.dataSource.manager.delete(Finetune, { id: otherId });
    expect((await draw([{ id: otherId, scale: 1 }])).error).toBe(`The Fine-Tune ${otherId} has been deleted.`);
  });

  it('are looked up again if they are replaced at that moment', async () => {
    const content = await readFile(lora);
    await bench.storage.write('weights/newer.safetensors', content);
    const storage = Object.getPrototypeOf(bench.storage) as ImageStorage;
    jest.spyOn(storage, 'localPath').mockImplementationOnce(async () => {
      await change({ weightsKey: 'weights/newer.safetensors' });
      throw new Error('ENOENT: no such file or directory');
    });
    const { status, attempt } = await bench.terminated(await accept());
    jest.restoreAllMocks();
    await change({ weightsKey: 'weights/robot.safetensors' });
    expect([status, attempt]).toEqual(['succeeded', 1]);
  });

  it('are no fault of a task or an engine if they are replaced before they are read', async () => {
    const unused = undefined as never;
    const resolver = new ModelResolver(bench.config, bench.storage, unused, unused, unused, unused, bench.dataSource);
    const broken = new EngineBrokenError('ENOENT');
    const noted = (weightsKey: string) =>
      resolver.errorAfterRefusal(broken, { weightsKeys: new Map([[finetuneId, weightsKey]]) } as never, 'cpu');
    expect(await noted('weights/robot.safetensors')).toBe(broken);
    expect(await noted('weights/deleted.safetensors')).toBeInstanceOf(TaskAbortedError);
  });
});
