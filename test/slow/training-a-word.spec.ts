import { ofSuite } from '../support/of-suite';
import { modelsTrainedWith, smallModels } from '../support/quick-model';
import { startTestService } from '../support/service';
import { Trainer } from '../support/trainings';
import { until } from '../support/until';

// A training has the lowest priority: beside other tests it takes many times as long as alone.
jest.setTimeout(600_000);

describe('A model whose Fine-Tunes are textual inversions', () => {
  const settings = { kind: 'textual_inversion', vectors: 5 };
  const models = ofSuite(async () => modelsTrainedWith(smallModels(), settings));
  const service = ofSuite(() =>
    startTestService({ env: { PUBLIC_URL: 'https://darkroom.example', MODELS_DIR: models.folder } }),
  );

  it('learns the token of a request as embeddings, which its Prompts are drawn with', async () => {
    const caller = new Trainer(service, await service.createKey());
    // With one embedding for the token it would fill the text window to the last place.
    const prompt = `${'a '.repeat(73)}robot`;
    const { id, prompts } = await caller.train({
      images_url: await caller.upload(),
      captions: ['a zwx robot', 'a robot from behind', 'a zwx robot', 'a zwx robot'],
      prompts: [{ prompt, steps: 2 }],
    });
    expect(await caller.has(id, 'ready')).toMatchObject({ weights: { kind: 'textual_inversion' } });
    const drawn = await until(async () => {
      const found = await caller.get<{ images: string[] }>(id, `/prompts/${prompts[0]}`);
      return found.images.length > 0 && found;
    }, 'the Prompt is drawn');
    expect(drawn.images).toHaveLength(1);
    expect(await caller.get(id, `/prompts/${prompts[0]}/status`)).toMatchObject({ prompt_chunks: 2 });
    // Its weights are a file as others train it.
    const body = { name: 'robot', model: 'shapes' };
    const { key } = caller;
    const { body: other } = await service.request<{ id: string }>('POST', '/v1/finetunes', { key, body });
    const sent = { key, raw: await caller.weights(id) };
    const { body: ready } = await service.request('PUT', `/v1/finetunes/${other.id}/weights`, sent);
    expect(ready).toMatchObject({ status: 'ready', weights: { kind: 'textual_inversion' } });
  });
});
