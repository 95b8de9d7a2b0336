import { AbortError, cures, ModelFolderError, NotFiniteError, RequestError, WeightsError } from '@app/diffusion';
import { UpscalerError } from './engine-errors';
import type { DrawnModel } from './engine-protocol';
import { failureOf } from './failure';

const folder = '/srv/models/sd1.5';
const model: DrawnModel = { key: 'sd1.5', name: 'sd1.5', folder, hash: 'a' };
const upscaler = { key: 'u', name: 'real.onnx', file: '/srv/models/upscalers/real.onnx', maxLongEdge: 4096 };

describe(failureOf.name, () => {
  it('refuses a drawing because of its model folder, with paths relative to the folder', () => {
    const error = new ModelFolderError(`${folder}/unet/model.onnx`, 'is cut short', cures.installAgain);
    expect(failureOf(error, { model })).toEqual({
      failure: 'refused',
      message:
        'The model sd1.5 cannot be drawn with: unet/model.onnx is cut short. Install it again, from a whole copy or from a new export.',
      problem: 'unet/model.onnx is cut short. Install it again, from a whole copy or from a new export.',
    });
  });

  it('names no path of the cache if a merged model is at fault', () => {
    const error = new ModelFolderError(
      '/var/darkroom/cache/finetunes/lora-ab/unet/model.onnx',
      'is missing',
      cures.installAgain,
    );
    const weights = { kind: 'lora', file: '/srv/robot', hash: 'b', scale: 1, token: 'zwx' } as const;
    // The model itself may be sound.
    expect(failureOf(error, { model: { ...model, weights } })).toEqual({
      failure: 'refused',
      message: 'The model sd1.5 with the weights of the Fine-Tune cannot be drawn with: unet/model.onnx is missing.',
    });
  });

  it('tells all faults of a folder in one line, and the problem of the model in a line each', () => {
    const inFolder = (path: string) => new ModelFolderError(`${folder}/${path}`, 'is missing', cures.installAgain);
    const { file, reason, cure } = inFolder('unet');
    const error = new ModelFolderError(file, reason, cure, [inFolder('scheduler'), inFolder('my tokenizer/x.json')]);
    const { message, problem } = failureOf(error, { model });
    const missing = (after: string) =>
      ['unet', 'scheduler', 'my tokenizer/x.json'].map((path) => `${path} is missing.${after}`);
    expect(problem).toBe(missing(` ${cure}`).join('\n'));
    expect(message).toBe(`The model sd1.5 cannot be drawn with: ${missing(` ${cure}`).join(' ')}`);
    const weights = { kind: 'lora', file: '/srv/robot', hash: 'b', scale: 1, token: 'zwx' } as const;
    expect(failureOf(error, { model: { ...model, weights } }).message).toBe(
      `The model sd1.5 with the weights of the Fine-Tune cannot be drawn with: ${missing('').join(' ')}`,
    );
  });

  it.each([
    ['/tmp/cold/lora-1', 'does not exist', 'the folder does not exist.'],
    ['/srv/my data/cache/lora-1', 'does not exist', 'the folder does not exist.'],
    ['/srv/my data/cache/lora-1/unet', 'is missing', 'unet is missing.'],
    ['/tmp/cold/lora-1/model_index.json', 'is not a JSON object', 'model_index.json is not a JSON object.'],
    [
      '/tmp/cold/lora-1/unet/model.weights',
      'is missing, and /tmp/cold/lora-1/unet/model.onnx keeps its weights there',
      'unet/model.weights is missing, and unet/model.onnx keeps its weights there.',
    ],
    [
      '/tmp/cold/lora-1/unet/model.onnx',
      'was refused by ONNX Runtime: see "/var/cache/graphs/a1", 1/2 and https://onnx.ai/x',
      'unet/model.onnx was refused by ONNX Runtime: see "the folder", 1/2 and https://onnx.ai/x.',
    ],
  ])('names no absolute path: %s %s', (file, reason, message) => {
    const error = new ModelFolderError(file, reason, cures.installAgain);
    const weights = { kind: 'lora', file: '/srv/robot', hash: 'b', scale: 1, token: 'zwx' } as const;
    const cannot = 'The model sd1.5 with the weights of the Fine-Tune cannot be drawn with: ';
    expect(failureOf(error, { model: { ...model, weights } }).message).toBe(cannot + message);
    expect(failureOf(error, { model }).problem).toBe(`${message} ${cures.installAgain}`);
  });

  it('refuses weights that do not fit, and invalid upscalers', () => {
    const weights = failureOf(new WeightsError('WeightsDoNotFitModel', 'down has 3 rows.'), { model });
    expect(weights).toEqual({
      failure: 'refused',
      message: 'The weights of the Fine-Tune cannot be used: down has 3 rows.',
    });
    const upscaling = failureOf(new UpscalerError('it takes int64.'), { model, upscaler });
    expect(upscaling).toEqual({
      failure: 'refused',
      message: 'The upscaler real.onnx cannot be used: it takes int64.',
    });
  });

  it('refuses a request out of range with the message of the pipeline', () => {
    expect(failureOf(new RequestError('The width is 500.'), { model })).toMatchObject({
      failure: 'refused',
      message: 'The width is 500.',
    });
  });

  it('takes an error of the JavaScript engine for nobody’s fault', () => {
    for (const message of ['Array buffer allocation failed', 'offset is out of bounds'])
      expect(failureOf(new RangeError(message), { model })).toMatchObject({ failure: 'broken', message });
  });

  it('refuses a drawing with a black picture, because it would be black again', () => {
    expect(failureOf(new NotFiniteError('U-Net'), { model })).toMatchObject({
      failure: 'refused',
      message: expect.stringMatching(/^The model gave numbers that are not finite .* may help\.$/) as string,
    });
    const weights = { kind: 'lora', file: '/srv/robot', hash: 'b', scale: 9, token: 'zwx' } as const;
    expect(failureOf(new NotFiniteError('U-Net'), { model: { ...model, weights } }).message).toMatch(
      / may help\. So may a lower scale of the weights of the Fine-Tune\.$/,
    );
  });

  it('distinguishes an abort from errors that a retry may overcome', () => {
    expect(failureOf(new AbortError(), { model }).failure).toBe('aborted');
    expect(failureOf(new Error('CUDA failure 2'), { model })).toMatchObject({
      failure: 'broken',
      message: 'CUDA failure 2',
    });
    expect(failureOf('odd', { model })).toMatchObject({ failure: 'broken', message: 'odd' });
  });
});
