import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { GenerationDto } from '@app/domain/http';
import { startTestApi } from '../support/api';
import { makeFinetune, type ProblemJson, type PromptJson } from '../support/factories';
import { unpackTransformerModel } from '../support/families';
import { ofSuite } from '../support/of-suite';

const models = ofSuite(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'darkroom-abilities-'));
  await unpackTransformerModel('flux2-klein', join(folder, 'klein'));
  await unpackTransformerModel('z-image', join(folder, 'z-image'));
  return { folder, close: () => rm(folder, { recursive: true }) };
});
const api = ofSuite(() => startTestApi({ MODELS_DIR: models.folder }));
const key = ofSuite(() => api.createKey());

const post = <T = ProblemJson>(path: string, body: unknown) => api.request<T>('POST', `/v1${path}`, { key, body });
const draw = (body: object) => post('/sd/text-to-image', { prompt: 'a fox', model: 'klein', ...body });

describe('What a model cannot do', () => {
  it.each([
    [
      { negative_prompt: 'grey' },
      '/negative_prompt',
      'The model "klein" takes no negative prompt: it was distilled to draw without guidance. Leave it out, or draw with a base model.',
    ],
    [
      { cfg: 4 },
      '/cfg',
      'The model "klein" takes no guidance: it was distilled to draw without guidance. Leave it out, or draw with a base model.',
    ],
    [
      { prompt_weighting: true },
      '/prompt_weighting',
      'The model "klein" takes no weights of words: it reads whole sentences, and knows no weights of words. Leave it out, or choose another model.',
    ],
    [
      { control: [{ image: 'https://example.com/a.png', model: 'canny' }] },
      '/control',
      'The model "klein" takes no ControlNet: there are no ControlNets for it here. Leave it out, or choose another model.',
    ],
  ])('is refused with a code of its own, the name of the model and a cure: %j', async (body, pointer, detail) => {
    const { status, body: problem } = await draw(body);
    expect(problem).toMatchObject({ code: 'UnsupportedByModel', detail, errors: [{ pointer }] });
    expect(status).toBe(422);
  });

  it('is refused in a Prompt by its place in the array', async () => {
    const { id } = await makeFinetune(api, key, { model: 'klein' });
    const prompts = [{ prompt: 'a robot' }, { prompt: 'a robot', negative_prompt: 'grey' }];
    const { body } = await post(`/finetunes/${id}/prompts`, prompts);
    expect(body).toMatchObject({ code: 'UnsupportedByModel', errors: [{ pointer: '/1/negative_prompt' }] });
  });

  it('is left out of a Style, so that each can be applied to every model', async () => {
    const { body: collections } = await api.request<{ id: string }[]>('GET', '/v1/prompts/collections?scope=public', {
      key,
    });
    const takenOf = async (model: string) => {
      const { id } = await makeFinetune(api, key, { model });
      const { status } = await post(`/finetunes/${id}/styles`, [{ id: collections[0].id }]);
      const { body } = await api.request<PromptJson[]>('GET', `/v1/finetunes/${id}/prompts`, { key });
      const isGuided = body.some(({ cfg }) => cfg !== 1);
      return { status, isGuided, negatives: new Set(body.map(({ negative_prompt }) => typeof negative_prompt)) };
    };
    expect(await takenOf('klein')).toEqual({ status: 201, isGuided: false, negatives: new Set(['object']) });
    const { isGuided, negatives } = await takenOf('z-image');
    expect([isGuided, negatives.has('string')]).toEqual([true, true]);
  });
});

describe('A request in the words of diffusers', () => {
  it.each([
    [
      { guidance_scale: 4 },
      'is not a known field; it is called "cfg" here, where 1 is no guidance; for Z-Image, whose guidance_scale counts from 0, add 1',
    ],
    [{ cfg: 0 }, 'must be from 1 to 20, got 0; 1 is no guidance'],
    [{ scheduler: 'FlowMatchEulerDiscreteScheduler' }, 'is called "euler" here, got "FlowMatchEulerDiscreteScheduler"'],
    [{ scheduler: 'DPMSolverMultistepScheduler' }, 'is called "dpmpp_2m" here, got "DPMSolverMultistepScheduler"'],
    [
      { aspect_ratio: 'wide' },
      'must be square, portrait, landscape, or a ratio from 1:4 to 4:1 of whole numbers to 64 such as 16:9, or an array holding one of these, got "wide"',
    ],
  ])('is told what they are here: %j', async (body, message) => {
    const { status, body: problem } = await draw(body);
    expect([status, problem.errors]).toMatchObject([400, [{ message }]]);
  });

  it('names each scheduler that GET /v1/models shows', async () => {
    const { body } = await api.request<{ scheduler: string }[]>('GET', '/v1/models', { key });
    for (const { scheduler } of body) expect((await draw({ scheduler })).body.errors![0].message).toMatch(/^is called/);
    expect((await post<GenerationDto>('/sd/text-to-image', { prompt: 'x', model: 'klein' })).body.cfg).toBe(1);
  });
});
