import { drawingTask, type DrawingValues } from '../../../../test/support/drawing-rows';
import { serviceVersion } from '../service-version';
import { parametersOf } from './picture-parameters';

const source = { key: 'shapes@abc', name: 'shapes', folder: 'models/shapes', hash: 'abc' };
const textOf = (values: DrawingValues, upscaler: string | null = null): string =>
  JSON.stringify(parametersOf(drawingTask('owner', values), 1, { scheduler: 'ddim', source, upscaler }));
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

  it('says that the picture was enlarged, and by what, beside the size at which it was drawn', () => {
    const text = textOf({ highResolution: true }, 'lanczos');
    expect(text).toBe(`${beginning}${middle}"high_resolution":true,"upscaler":"lanczos",${end}`);
  });
});
