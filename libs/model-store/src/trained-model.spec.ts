import type { InstalledModel } from './model-store';
import { findTrained } from './trained-model';

const modelOf = (name: string, more: Partial<InstalledModel> = {}): InstalledModel => ({
  ...{ name, folder: name, hash: 'a', bytes: 0, source: undefined, addedAt: '', defaults: {} },
  ...{ schedulerProblems: { named: {} }, family: 'flux2', familyTitle: 'FLUX.2 [klein]', ...more },
});
const klein = (train_on?: string) => modelOf('klein', { defaults: train_on === undefined ? {} : { train_on } });

describe(findTrained, () => {
  const installed = [
    modelOf('base'),
    modelOf('other', { family: 'z-image' }),
    modelOf('small', { cannot: { training: 'Its weights are in int8.' } }),
    modelOf('broken', { hash: undefined, problem: 'it lacks a file.' }),
    modelOf('next', { defaults: { train_on: 'base' } }),
  ];
  const find = (drawn: InstalledModel) =>
    findTrained({ find: async (name) => installed.find((model) => model.name === name) }, drawn);

  it('is the model itself, or the one that it names', async () => {
    const own = klein();
    expect(await find(own)).toBe(own);
    expect(await find(klein('base'))).toBe(installed[0]);
  });

  it('says why a model cannot be trained', async () => {
    expect(await find(installed[2])).toBe('Its weights are in int8.');
  });

  it.each([
    ['nowhere', 'is not installed'],
    ['other', 'is no model of FLUX.2 [klein]'],
    ['small', 'cannot be trained: Its weights are in int8'],
    ['broken', 'cannot be read: it lacks a file'],
    ['next', 'has a train_on too'],
    ['klein', 'has a train_on too'],
  ])('says what is wrong with one that is named: %s', async (name, problem) => {
    expect(await find(klein(name))).toBe(`Its darkroom.json has it trained on "${name}", which ${problem}.`);
  });
});
