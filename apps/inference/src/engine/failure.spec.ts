import {
  AbortError,
  cures,
  ModelFolderError,
  NotFiniteError,
  RequestError,
  SchedulerError,
  UpscalerError,
  WeightsError,
} from '@app/diffusion';
import { failureOf } from './failure';

const folder = '/srv/models/sd1.5';
const plain = { model: { key: 'sd1.5', name: 'sd1.5', folder, hash: 'a' }, adapters: [] };
const lora = { kind: 'lora', file: '/srv/robot', hash: 'b', scale: 1, token: 'zwx' } as const;
const tuned = { ...plain, adapters: [lora] };
const upscaler = { key: 'u', name: 'real.onnx', file: '/srv/models/upscalers/real.onnx', maxLongEdge: 4096 };

describe(failureOf.name, () => {
  it('refuses a drawing because of its model folder, with paths relative to the folder', () => {
    const error = new ModelFolderError(`${folder}/unet/model.onnx`, 'is cut short', cures.installAgain);
    expect(failureOf(error, plain)).toEqual({
      failure: 'refused',
      message:
        'The model sd1.5 cannot be drawn with: unet/model.onnx is cut short. Install it again, from a whole copy.',
      problem: 'unet/model.onnx is cut short. Install it again, from a whole copy.',
    });
  });

  it('names no path of the cache if a Fine-Tune may be at fault', () => {
    const error = new ModelFolderError('/var/darkroom/cache/lora-ab/unet/model.onnx', 'is missing', cures.installAgain);
    // The model itself may be sound.
    expect(failureOf(error, tuned)).toEqual({
      failure: 'refused',
      message: 'The model sd1.5 with the weights of the Fine-Tune cannot be drawn with: unet/model.onnx is missing.',
    });
  });

  it('tells all faults of a folder in one line, and the problem of the model in a line each', () => {
    const inFolder = (path: string) => new ModelFolderError(`${folder}/${path}`, 'is missing', cures.installAgain);
    const { file, reason, cure } = inFolder('unet');
    const error = new ModelFolderError(file, reason, cure, [inFolder('scheduler'), inFolder('my tokenizer/x.json')]);
    const { message, problem } = failureOf(error, plain);
    const missing = (after: string) =>
      ['unet', 'scheduler', 'my tokenizer/x.json'].map((path) => `${path} is missing.${after}`);
    expect(problem).toBe(missing(` ${cure}`).join('\n'));
    expect(message).toBe(`The model sd1.5 cannot be drawn with: ${missing(` ${cure}`).join(' ')}`);
    expect(failureOf(error, tuned).message).toBe(
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
    const cannot = 'The model sd1.5 with the weights of the Fine-Tune cannot be drawn with: ';
    expect(failureOf(error, tuned).message).toBe(cannot + message);
    expect(failureOf(error, plain).problem).toBe(`${message} ${cures.installAgain}`);
  });

  it('refuses weights that do not fit, and invalid upscalers', () => {
    const weights = failureOf(new WeightsError('WeightsDoNotFitModel', 'down has 3 rows.'), plain);
    expect(weights).toEqual({
      failure: 'refused',
      message: 'The weights of the Fine-Tune cannot be used: down has 3 rows.',
    });
    const upscaling = failureOf(new UpscalerError('it takes int64.'), { ...plain, upscaler });
    expect(upscaling).toEqual({
      failure: 'refused',
      message: 'The upscaler real.onnx cannot be used: it takes int64.',
    });
  });

  it.each([new RequestError('The width is 500.'), new SchedulerError('The steps are 500.')])(
    'refuses a request out of range with the message of the pipeline: %s',
    (error) => expect(failureOf(error, plain)).toMatchObject({ failure: 'refused', message: error.message }),
  );

  it('takes an error of the JavaScript engine for nobody’s fault', () => {
    for (const message of ['Array buffer allocation failed', 'offset is out of bounds'])
      expect(failureOf(new RangeError(message), plain)).toMatchObject({ failure: 'broken', message });
  });

  it('refuses a drawing with a black picture, because it would be black again', () => {
    expect(failureOf(new NotFiniteError('U-Net'), plain)).toMatchObject({
      failure: 'refused',
      message: expect.stringMatching(/^The model gave numbers that are not finite .* may help\.$/) as string,
    });
    expect(failureOf(new NotFiniteError('U-Net'), tuned).message).toMatch(
      / may help\. So may a lower scale of the weights of the Fine-Tune\.$/,
    );
  });

  it('distinguishes an abort from errors that a retry may overcome', () => {
    expect(failureOf(new AbortError(), plain).failure).toBe('aborted');
    expect(failureOf(new Error('CUDA failure 2'), plain)).toMatchObject({
      failure: 'broken',
      message: 'CUDA failure 2',
    });
    expect(failureOf('odd', plain)).toMatchObject({ failure: 'broken', message: 'odd' });
  });
});
