import { Finetune } from '@app/domain';
import type { PromptOrder } from './new-prompt';
import { newPrompt } from './new-prompt';

const orderOf = (asked: Partial<PromptOrder> = {}): PromptOrder => ({
  prompt: 'a robot',
  negativePrompt: undefined,
  cfg: undefined,
  steps: undefined,
  seed: undefined,
  highResolution: undefined,
  aspectRatio: undefined,
  metadata: undefined,
  webhook: undefined,
  ...asked,
});

describe(newPrompt.name, () => {
  const finetune = Object.assign(new Finetune(), {
    id: 'f',
    ownerId: 'o',
    name: 'robot',
    token: 'zwx',
    model: 'shapes',
  });
  const now = new Date();

  it('keeps the text as it was sent and draws it with the token', () => {
    const { prompt, finetunePrompt } = newPrompt(finetune, orderOf(), now, {});
    expect([finetunePrompt.prompt, prompt]).toEqual(['a robot', 'a zwx robot']);
  });

  it('takes the defaults of the model where nothing is asked for', () => {
    const own = { steps: 4, cfg: 1, scheduler: 'lcm' } as const;
    expect(newPrompt(finetune, orderOf(), now, own)).toMatchObject(own);
    const task = newPrompt(finetune, orderOf({ steps: 8, cfg: 2 }), now, own);
    expect(task).toMatchObject({ steps: 8, cfg: 2, scheduler: 'lcm' });
  });

  it('fills every default in', () => {
    const { finetunePrompt, ...task } = newPrompt(finetune, orderOf({ negativePrompt: null }), now, {});
    expect(task).toMatchObject({
      kind: 'prompt',
      finetuneId: 'f',
      ownerId: 'o',
      model: 'shapes',
      negativePrompt: null,
      cfg: 7.5,
      steps: 30,
      aspectRatio: 'square',
      highResolution: false,
      numImages: 1,
    });
    expect(finetunePrompt.metadata).toBeNull();
  });

  it('chooses another seed each time, and keeps one that is given', () => {
    const seeds = new Set(Array.from({ length: 20 }, () => newPrompt(finetune, orderOf(), now, {}).seed));
    expect(seeds.size).toBeGreaterThan(15);
    expect(newPrompt(finetune, orderOf({ seed: 0 }), now, {}).seed).toBe(0);
  });
});
