import { Finetune, newIdentifier } from '@app/domain';
import { type Reply, startTestApi } from '../support/api';
import { type FinetuneJson, makeFinetune, type ProblemJson } from '../support/factories';
import { ofSuite, ofTest } from '../support/of-suite';
import { upload } from '../support/contract-caller';

interface GenerationJson {
  id: string;
  model: string;
  prompt: string;
  finetunes?: { id: string; scale: number }[];
}

describe('`finetunes` of a Generation', () => {
  const api = ofSuite(() => startTestApi());
  const key = ofTest(() => api.createKey());

  const create = (body: object): Promise<Reply<GenerationJson & ProblemJson>> =>
    api.request('POST', '/v1/sd/text-to-image', { key, body: { prompt: 'zwx robot', ...body } });

  /** The columns of a Fine-Tune with the weights of a LoRA at the scale 0.75. */
  const weights = ofSuite(async () => {
    const owner = await api.createKey();
    const { id } = await makeFinetune(api, owner);
    await api.request('PUT', `/v1/finetunes/${id}/weights?scale=0.75`, { key: owner, ...upload });
    const { weightsKind, weightsHash, weightsKey, weightsScale, weightsBase } =
      await api.dataSource.manager.findOneByOrFail(Finetune, { id });
    return { weightsKind, weightsHash, weightsKey, weightsScale, weightsBase, status: 'ready' as const };
  });
  /** A Fine-Tune with such weights; `change` is written to its row. */
  const tuned = async (body: object = {}, change: Partial<Finetune> = {}): Promise<FinetuneJson> => {
    const finetune = await makeFinetune(api, key, body);
    await api.dataSource.manager.update(Finetune, { id: finetune.id }, { ...weights, ...change });
    return finetune;
  };
  const embedding = (token: string) => tuned({ token }, { weightsKind: 'textual_inversion', weightsScale: 1 });

  const refusal = async (body: object) => {
    const { status, body: problem } = await create(body);
    return [status, problem.code, problem.errors?.map(({ pointer }) => pointer)];
  };

  it('are shown with the scales that they are drawn with, and add no word to the text', async () => {
    const [one, other] = [await tuned(), await embedding('blurred')];
    const { status, body } = await create({ finetunes: [{ id: one.id, scale: 0.5 }, { id: other.id }] });
    expect([status, body.prompt]).toEqual([201, 'zwx robot']);
    const shown = [
      { id: one.id, scale: 0.5 },
      { id: other.id, scale: 1 },
    ];
    expect(body.finetunes).toEqual(shown);
    const found = await api.request<GenerationJson>('GET', `/v1/sd/text-to-image/${body.id}`, { key });
    expect(found.body).toEqual(body);
  });

  it('have the scale of the Fine-Tune where none is sent, also after that was changed', async () => {
    const { id } = await tuned();
    const { body } = await create({ finetunes: [{ id }] });
    await api.request('PATCH', `/v1/finetunes/${id}`, { key, body: { scale: 1.5 } });
    const found = await api.request<GenerationJson>('GET', `/v1/sd/text-to-image/${body.id}`, { key });
    expect(found.body.finetunes).toEqual([{ id, scale: 0.75 }]);
  });

  it('decide the model where the request names none', async () => {
    const { id } = await tuned({ model: 'shapes' });
    expect((await create({ finetunes: [{ id }] })).body.model).toBe('shapes');
    expect((await create({ finetunes: [] })).body).toMatchObject({ model: 'sd1.5', finetunes: [] });
  });

  it('may be of another name of the model that draws', async () => {
    const { id } = await tuned({ model: 'sd2.1' });
    expect((await create({ model: 'shapes', finetunes: [{ id }] })).status).toBe(201);
  });

  it('are refused if they are unknown or of somebody else', async () => {
    const { id } = await tuned();
    const stranger = await api.createKey();
    const foreign = await makeFinetune(api, stranger);
    for (const wrong of [newIdentifier(), foreign.id, 'x'])
      expect(await refusal({ finetunes: [{ id }, { id: wrong }] })).toEqual([
        422,
        'FineTuneNotFound',
        ['/finetunes/1/id'],
      ]);
  });

  it('are refused without weights', async () => {
    const { id } = await makeFinetune(api, key);
    expect(await refusal({ finetunes: [{ id }] })).toEqual([422, 'WeightsMissing', ['/finetunes/0/id']]);
  });

  it('are refused if they are of another model, or their model was replaced', async () => {
    const weightsBase = `sd2.1@${'0'.repeat(12)}`;
    const [own, other] = [await tuned(), await tuned({ model: 'sd2.1' }, { weightsBase })];
    expect(await refusal({ finetunes: [own, other].map(({ id }) => ({ id })) })).toEqual([
      422,
      'FineTuneOfOtherModel',
      ['/finetunes/1/id'],
    ]);
    expect(await refusal({ finetunes: [{ id: other.id }] })).toEqual([422, 'FineTuneStale', ['/finetunes/0/id']]);
  });

  it('are refused if two embeddings have one token, or an embedding has a scale', async () => {
    const [one, same] = [await embedding('Blur'), await embedding('blur')];
    expect(await refusal({ finetunes: [{ id: one.id }, { id: same.id }] })).toEqual([
      422,
      'FineTuneTokensEqual',
      ['/finetunes/1/id'],
    ]);
    expect(await refusal({ finetunes: [{ id: one.id, scale: 0.5 }] })).toEqual([
      422,
      'ScaleUnsupported',
      ['/finetunes/0/scale'],
    ]);
  });

  it('count the vectors of an embedding in the length of the texts', async () => {
    const { id } = await tuned({ token: 'zig' }, { weightsKind: 'textual_inversion', weightsVectors: 40 });
    const sent = { negative_prompt: 'zig zig', finetunes: [{ id }] };
    expect((await create(sent)).body).toMatchObject({ prompt_chunks: 2 });
    expect(await refusal({ ...sent, negative_prompt: 'zig '.repeat(100) })).toEqual([
      422,
      'PromptTooLong',
      ['/negative_prompt'],
    ]);
  });
});
