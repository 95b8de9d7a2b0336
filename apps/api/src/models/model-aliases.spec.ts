import { modelOf } from './model-aliases';

describe(modelOf.name, () => {
  const aliases = ['gpt-image-2=klein', 'gpt-image-*=default', '*-x-*y=other'];

  it.each([
    ['gpt-image-2', 'klein'],
    ['gpt-image-2.5-sunburst', 'sd1.5'],
    ['gpt-image-', 'sd1.5'],
    ['a-x-by', 'other'],
    ['a-x-y', 'other'],
    ['a-x-', 'a-x-'],
    ['gpt-image', 'gpt-image'],
  ])('takes %s for %s', (name, model) => expect(modelOf(name, aliases)).toBe(model));
});
