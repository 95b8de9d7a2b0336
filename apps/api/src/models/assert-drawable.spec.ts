import type { InstalledModel } from '@app/model-store';
import { assertDrawable } from './assert-drawable';

describe(assertDrawable.name, () => {
  const cannot = { cfg: 'It was distilled.', negative_prompt: 'It was distilled.', control: 'There are none for it.' };
  const model = { name: 'klein', cannot, hasEncoder: true, defaults: {}, schedulerProblems: { named: {} } };
  const check = (values: object) =>
    assertDrawable(model as unknown as InstalledModel, { ...values, pointer: '/prompts/3' });

  it.each([
    [
      { cfg: 4 },
      'The model "klein" takes no guidance: it was distilled. Leave it out, or draw with a base model.',
      ['cfg'],
    ],
    [
      { negative_prompt: 'green' },
      'The model "klein" takes no negative prompt: it was distilled. Leave it out, or draw with a base model.',
      ['negative_prompt'],
    ],
    [
      { control: [{}], negative_prompt: 'green' },
      'The model "klein" takes no negative prompt: it was distilled. Leave it out, or draw with a base model.',
      ['negative_prompt', 'control'],
    ],
    [
      { control: [{}] },
      'The model "klein" takes no ControlNet: there are none for it. Leave it out, or choose another model.',
      ['control'],
    ],
  ])('refuses %j with the name of the model, the sentence of its family and what to do', (values, message, fields) => {
    const error = expect.objectContaining({
      ...{ code: 'UnsupportedByModel', kind: 'unprocessable', message },
      fields: fields.map((field) => expect.objectContaining({ pointer: `/prompts/3/${field}` }) as object),
    }) as Error;
    expect(() => check(values)).toThrow(error);
  });

  it.each([
    {},
    { cfg: null },
    { cfg: 1 },
    { negative_prompt: '' },
    { negative_prompt: null },
    { prompt_weighting: true },
    { control: [] },
  ])('lets %j through', (values) => expect(() => check(values)).not.toThrow());
});
