import type { InstalledModel } from '@app/model-store';
import { assertAble } from './assert-drawable';

describe(assertAble.name, () => {
  const model = { cannot: { negative_prompt: 'It reads none.', control: 'There is none for it.' } };
  const check = (values: object) =>
    assertAble(
      model as InstalledModel,
      [{ negativePrompt: null, promptWeighting: false, inputs: null, ...values }],
      (index, field) => `/${index}/${field}`,
    );

  it.each([
    [{ negativePrompt: 'green' }, '/0/negative_prompt', 'It reads none.'],
    [{ inputs: { control: [{}] } }, '/0/control', 'There is none for it.'],
  ])('refuses %j with the sentence of the family', (values, pointer, sentence) => {
    expect(() => check(values)).toThrow(`"${pointer}" cannot be used with this model. ${sentence}`);
  });

  it.each([{}, { negativePrompt: '' }, { promptWeighting: true }, { inputs: { control: undefined } }])(
    'lets %j through',
    (values) => expect(() => check(values)).not.toThrow(),
  );
});
