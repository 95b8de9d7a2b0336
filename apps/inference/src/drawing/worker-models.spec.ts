import { type InstalledModel, modelKey } from '@app/model-store';
import { JsonLogger } from '@app/observability';
import { BrokenModels } from './broken-models';
import { WorkerModels } from './worker-models';

const installed = (name: string, values: Partial<InstalledModel> = {}): InstalledModel => ({
  name,
  folder: `/models/${name}`,
  hash: 'a'.repeat(64),
  bytes: 1,
  source: undefined,
  addedAt: '',
  defaults: {},
  schedulerProblems: { named: {} },
  ...values,
});

class FakeStore {
  models: InstalledModel[] = [];
  problem: Error | undefined;
  unnamed: string | undefined;

  async list(): Promise<InstalledModel[]> {
    if (this.problem) throw this.problem;
    return this.models;
  }

  async passedOver(): Promise<string | undefined> {
    return this.unnamed;
  }
}

describe(WorkerModels.name, () => {
  const store = new FakeStore();
  let broken: BrokenModels;
  beforeEach(() => (broken = new BrokenModels()));
  const modelsOf = async (models: InstalledModel[], modelFallback = true): Promise<WorkerModels> => {
    store.models = models;
    const worker = new WorkerModels(store, { modelFallback }, new JsonLogger('test', 'silent'), broken);
    await worker.refresh();
    return worker;
  };

  it('has the sound models that a device of the worker can draw', async () => {
    const half = installed('half');
    broken.add({ key: modelKey(half), problem: 'It overflows.' }, 'cuda:0');
    const cut = installed('broken', { hash: undefined, problem: 'It has no U-Net.' });
    const models = await modelsOf([cut, half, installed('small')]);
    expect(models.drawableOn(['cpu'])).toEqual(['half', 'small']);
    expect(models.drawableOn(['cuda:0'])).toEqual(['small']);
    expect(models.drawableOn(['cpu', 'cuda:0'])).toEqual(['half', 'small']);
    expect(models.drawableOn([])).toEqual([]);
  });

  it('trains what it can draw, and for what another model is trained in its place if it has that too', async () => {
    const [base, klein] = [installed('base'), installed('klein', { defaults: { train_on: 'base' } })];
    const models = await modelsOf([klein, installed('small')]);
    expect(models.drawableOn(['cpu'])).toEqual(['klein', 'small']);
    expect(models.trainableOn(['cpu'])).toEqual(['small']);
    expect(models.trainedOn).toEqual({ klein: 'base' });
    const both = await modelsOf([base, klein]);
    expect(both.trainableOn(['cpu'])).toEqual(['base', 'klein']);
    broken.add({ key: modelKey(base), problem: 'It overflows.' }, 'cuda:0');
    expect(both.trainableOn(['cuda:0'])).toEqual([]);
  });

  it('knows what is drawn with a model that an engine has loaded', async () => {
    const shapes = installed('shapes');
    const skipping = installed('skipping', { defaults: { clip_skip: 2 } });
    const models = await modelsOf([shapes, skipping]);
    expect(models.drawnWith(new Set([modelKey(shapes)]))).toEqual(['shapes', 'sd1.5', 'sd2.1']);
    expect(models.drawnWith(new Set([modelKey(skipping)]))).toEqual(['skipping']);
    expect(models.drawnWith(new Set(['upscaler x4']))).toEqual([]);
  });

  it('names at its start each model that cannot be used, and each folder that is none, and why', async () => {
    const lines: unknown[] = [];
    const write = (line: string): void => void lines.push(JSON.parse(line));
    store.models = [installed('cut', { hash: undefined, problem: 'It has no U-Net.' }), installed('small')];
    store.unnamed = 'Rename it.';
    const worker = new WorkerModels(store, { modelFallback: true }, new JsonLogger('test', 'warn', { write }), broken);
    await worker.onModuleInit();
    store.unnamed = undefined;
    expect(lines).toMatchObject([
      { msg: 'a model cannot be used', model: 'cut', problem: 'It has no U-Net.' },
      { msg: 'folders in the models folder are passed over', reason: 'Rename it.' },
    ]);
    expect(worker.drawableOn(['cpu'])).toEqual(['small']);
  });

  it('warns once that the models cannot be listed, at its start and when one is missed', async () => {
    const lines: unknown[] = [];
    const write = (line: string): void => void lines.push(JSON.parse(line));
    const store = new FakeStore();
    store.problem = new Error('no such folder');
    const worker = new WorkerModels(store, { modelFallback: true }, new JsonLogger('test', 'warn', { write }), broken);
    await worker.onModuleInit();
    await worker.refreshUnlessJustRead();
    expect(lines).toMatchObject([{ msg: 'the models could not be listed', reason: 'no such folder' }]);
    expect(lines).toHaveLength(1);
  });

  it('has what the stand-in stands in for: what is not installed, where the operator allows it', async () => {
    const all = [installed('shapes'), installed('sd2.1', { hash: undefined, problem: 'It is cut.' })];
    expect((await modelsOf(all)).drawableOn(['cpu'])).toEqual(['shapes', 'sd1.5']);
    expect((await modelsOf(all, false)).drawableOn(['cpu'])).toEqual(['shapes']);
    expect((await modelsOf([installed('small')])).drawableOn(['cpu'])).toEqual(['small']);
  });

  it('has no model that an engine has refused, nor what it stands in for, until its files or its darkroom.json have changed', async () => {
    const shapes = installed('shapes');
    const models = await modelsOf([shapes, installed('small')]);
    const refused = { key: modelKey(shapes), problem: 'It is odd.' };
    broken.add(refused, 'cuda:0');
    expect(models.drawableOn(['cuda:0'])).toEqual(['small']);
    // A model that one device refuses may be drawn by another.
    expect(models.drawableOn(['cpu', 'cuda:0'])).toContain('shapes');
    broken.add(refused, 'cpu');
    expect(models.drawableOn(['cpu', 'cuda:0'])).toEqual(['small']);
    expect([broken.refusedOn(refused.key), broken.list()]).toEqual([['cuda:0', 'cpu'], [refused]]);
    for (const changed of [{ hash: 'b' }, { defaults: { clip_skip: 2 } }])
      expect((await modelsOf([{ ...shapes, ...changed }])).drawableOn(['cpu'])).toEqual(['shapes', 'sd1.5', 'sd2.1']);
  });

  it('has a new model after it was missed, unless the folder was read a moment ago', async () => {
    const clock = jest.spyOn(performance, 'now').mockReturnValue(0);
    const models = await modelsOf([]);
    store.models = [installed('new')];
    clock.mockReturnValue(999);
    await models.refreshUnlessJustRead();
    expect(models.drawableOn(['cpu'])).toEqual([]);
    clock.mockReturnValue(1000);
    await models.refreshUnlessJustRead();
    expect(models.drawableOn(['cpu'])).toEqual(['new']);
    clock.mockRestore();
  });
});
