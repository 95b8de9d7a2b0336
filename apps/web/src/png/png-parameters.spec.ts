import { withPngText } from '../../../inference/src/pictures/png-text';
import { readPngParameters } from './png-parameters';

/** A PNG of one pixel: header, data, end. */
const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
const parameters = {
  prompt: 'a circle – „rot“',
  negative_prompt: null,
  seed: 7,
  cfg: 7.5,
  steps: 4,
  scheduler: 'EulerDiscreteScheduler',
  width: 768,
  height: 512,
  model: 'shapes',
};
const withText = (text: string, keyword = 'parameters') => Buffer.concat(withPngText(png, { [keyword]: text }));

describe(readPngParameters.name, () => {
  it('reads what the worker writes', () => {
    expect(readPngParameters(withText(JSON.stringify(parameters)))).toEqual({
      prompt: parameters.prompt,
      negative_prompt: null,
      prompt_weighting: false,
      seed: 7,
      cfg: 7.5,
      steps: 4,
      model: 'shapes',
      scheduler: 'EulerDiscreteScheduler',
      isOfFinetune: false,
      ...{ aspect_ratio: null, width: parameters.width, height: parameters.height },
      high_resolution: false,
    });
  });

  it.each([
    [{ prompt_weighting: true }, { prompt_weighting: true, high_resolution: false }],
    [
      { high_resolution: true, upscaler: 'lanczos' },
      { prompt_weighting: false, high_resolution: true },
    ],
    [{ upscaler: 'lanczos' }, { prompt_weighting: false, high_resolution: true }],
  ])('reads the flags of %j', (flags, expected) => {
    expect(readPngParameters(withText(JSON.stringify({ ...parameters, ...flags })))).toMatchObject(expected);
  });

  it('reads the longest prompts in any script', () => {
    const longest = { prompt: '円'.repeat(32_000), negative_prompt: 'ü'.repeat(32_000) };
    expect(readPngParameters(withText(JSON.stringify({ ...parameters, ...longest })))).toMatchObject(longest);
  });

  it('finds nothing in other files', () => {
    const whole = withText(JSON.stringify(parameters));
    const others = [
      png,
      Buffer.alloc(0),
      Buffer.from('GIF89a'),
      withText('no JSON'),
      withText('{"prompt": 5}'),
      withText(JSON.stringify(parameters), 'other'),
    ];
    for (const change of [{ seed: -1e308 }, { cfg: 1e300 }, { steps: -5.5 }, { prompt: 'A'.repeat(32_001) }])
      others.push(withText(JSON.stringify({ ...parameters, ...change })));
    // A keyword without an end, longer than what may be spread over arguments.
    others.push(withText('', 'parameters'.repeat(50_000)));
    for (const file of others) expect(readPngParameters(file)).toBeUndefined();
    for (let length = 0; length < 200; length++) expect(readPngParameters(whole.subarray(0, length))).toBeUndefined();
  });
});
