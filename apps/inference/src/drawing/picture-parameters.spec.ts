import { serviceVersion } from '@app/process';
import { drawingTask, type DrawingValues } from '../../../../test/support/drawing-rows';
import { parametersOf } from './picture-parameters';

const source = { key: 'shapes@abc', name: 'shapes', folder: 'models/shapes', hash: 'abc' };
const lora = { kind: 'lora', file: 'robot', hash: 'def', scale: 0.5, token: 'zwx' } as const;
const textOf = (
  values: DrawingValues,
  { upscaler = null, adapters = [], clipSkip }: Partial<Parameters<typeof parametersOf>[2]> = {},
): string =>
  JSON.stringify(
    parametersOf(drawingTask('owner', values), 1, { scheduler: 'ddim', source, adapters, clipSkip, upscaler }),
  );
const beginning = '{"prompt":"a star","negative_prompt":null,';
const middle =
  '"seed":2,"cfg":7.5,"steps":30,"scheduler":"ddim","width":512,"height":512,"model":"shapes","model_hash":"abc",';
const end = `"version":"${serviceVersion}"}`;

describe(parametersOf.name, () => {
  it('has the same text as ever for a picture without flags', () => {
    expect(textOf({})).toBe(`${beginning}${middle}${end}`);
  });

  it('says that the prompt has weights', () => {
    expect(textOf({ promptWeighting: true })).toBe(`${beginning}"prompt_weighting":true,${middle}${end}`);
  });

  it('says what the model was changed by, and which layer of the text encoder counted', () => {
    const weights = '"weights_hash":"def","weights_scale":0.5,';
    expect(textOf({}, { adapters: [lora], clipSkip: 1 })).toBe(`${beginning}${middle}${weights}${end}`);
    expect(textOf({}, { clipSkip: 2 })).toBe(`${beginning}${middle}"clip_skip":2,${end}`);
  });

  it('says that the picture was enlarged, and by what, beside the size at which it was drawn', () => {
    const text = textOf({ highResolution: true }, { upscaler: 'lanczos' });
    expect(text).toBe(`${beginning}${middle}"high_resolution":true,"upscaler":"lanczos",${end}`);
  });
});
