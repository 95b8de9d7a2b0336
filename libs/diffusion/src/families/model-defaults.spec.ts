import { problemsOfDefaults } from './model-defaults';

describe(problemsOfDefaults, () => {
  it.each([
    {},
    { steps: 1 },
    { steps: 4, cfg: 1, scheduler: 'lcm', clip_skip: 2, size: 768, prediction_type: 'v_prediction' },
    { training: { steps: 300, rank: 8, layers: 'all', learning_rate: 1e-3, batch: 4, prior_prompts: ['a cat'] } },
    { training: { text_encoders: true, kind: 'lora' }, train_on: 'klein-base' },
    { training: { kind: 'textual_inversion', vectors: 4 } },
  ])('accepts %j', (json) => {
    expect(problemsOfDefaults(json)).toEqual([]);
  });

  it.each([
    [{ steps: 0 }, 'has steps that are no integer from 1 to 50'],
    [{ steps: 1.5 }, 'has steps that are no integer from 1 to 50'],
    [{ steps: '4' }, 'has steps that are no integer from 1 to 50'],
    [{ cfg: 0.5 }, 'has a cfg that is no number from 1 to 20'],
    [{ cfg: NaN }, 'has a cfg that is no number from 1 to 20'],
    [{ cfg: null }, 'has a cfg that is no number from 1 to 20'],
    [{ scheduler: 'toString' }, /^has a scheduler that is none of ddim, ddpm, /],
    [{ clip_skip: 0 }, 'has a clip_skip that is no integer from 1 to 12'],
    [{ size: 500 }, 'has a size that is no multiple of 64 from 256 to 2048'],
    [{ train_on: '../klein' }, 'has a train_on that is no name of an installed model'],
    [{ training: [] }, 'has a "training" that is no object of values'],
    [{ training: { rate: 1 } }, /^has a "training" with other keys than steps, rank, layers, /],
    [{ training: { steps: 49 } }, 'has a "training" with steps that are no integer from 50 to 5000'],
    [{ training: { learning_rate: 0 } }, 'has a "training" with a learning_rate that is no number above 0 and up to 1'],
    [{ training: { flips: 1 } }, 'has a "training" with flips that are neither true nor false'],
    [{ training: { text_encoders: 1 } }, 'has a "training" with text_encoders that are neither true nor false'],
    [{ training: { kind: 'x' } }, 'has a "training" with a kind that is neither "lora" nor "textual_inversion"'],
    [{ training: { vectors: 33 } }, 'has a "training" with vectors that are no integer from 1 to 32'],
    [{ training: { prior_prompts: 'cat' } }, 'has a "training" with prior_prompts that are no list of up to 200 texts'],
    [
      { guidance: 1 },
      'has "guidance", and only steps, cfg, scheduler, clip_skip, size, max_pixels, prediction_type, train_on and training are known',
    ],
  ])('refuses %j', (json, sentence) => {
    expect(problemsOfDefaults(json)).toEqual([
      typeof sentence === 'string' ? sentence : (expect.stringMatching(sentence) as string),
    ]);
  });

  it('tells all faults', () => {
    expect(problemsOfDefaults({ steps: 99, guidance: 1, cfg: 50, scheduler: '', width: 2 })).toEqual([
      'has "guidance", "width", and only steps, cfg, scheduler, clip_skip, size, max_pixels, prediction_type, train_on and training are known',
      'has steps that are no integer from 1 to 50',
      'has a cfg that is no number from 1 to 20',
      expect.stringMatching(/^has a scheduler /),
    ]);
  });
});
