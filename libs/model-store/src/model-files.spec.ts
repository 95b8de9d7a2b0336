import { join, resolve, sep } from 'node:path';
import * as fc from 'fast-check';
import { isSafePath, selectModelFiles } from './model-files';
import { isModelName } from './model-names';

const base = ['model_index.json', 'scheduler/scheduler_config.json', 'tokenizer/vocab.json', 'tokenizer/merges.txt'];
const graphs = ['text_encoder/model.onnx', 'unet/model.onnx', 'vae_decoder/model.onnx'];
const select = (...more: string[]): string[] => selectModelFiles([...base, ...graphs, ...more]).map(({ to }) => to);

describe(selectModelFiles.name, () => {
  it('selects the plain files of a model, sorted', () => {
    expect(select()).toEqual([...base, ...graphs].sort());
  });

  it('selects external data of any name, configs, the fused graph and the preview map', () => {
    const more = [
      'unet/weights.pb',
      'unet/onnx__MatMul_1234',
      'unet/config.json',
      'unet/model_cuda.onnx',
      'unet/model_cuda.onnx_data',
      'text_encoder/model.onnx.data',
      'tokenizer/special_tokens_map.json',
      'preview.json',
    ];
    expect(select(...more)).toEqual([...base, ...graphs, ...more].sort());
  });

  it('leaves out the files of other frameworks, precisions and parts', () => {
    const more = [
      'README.md',
      'LICENSE',
      'safety_checker/model.onnx',
      'vae_encoder/model.onnx',
      'feature_extractor/preprocessor_config.json',
      'unet/diffusion_pytorch_model.bin',
      'unet/diffusion_pytorch_model.fp16.safetensors',
      'unet/openvino_model.xml',
      'unet/model_fp16.onnx',
      'unet/model_fp16.onnx_data',
      'unet/model_quantized.onnx',
      'unet/.cache',
      'text_encoder/pytorch_model.bin',
      'vae_decoder/flax_model.msgpack',
      'v1-5-pruned.ckpt',
    ];
    expect(select(...more)).toEqual(select());
  });

  it('gives a graph of another name the name that loaders expect, and keeps its data', () => {
    const paths = [...base, ...graphs.slice(0, 2), 'vae_decoder/model_fp16.onnx', 'vae_decoder/model_fp16.onnx_data'];
    expect(selectModelFiles(paths)).toEqual(
      expect.arrayContaining([
        { from: 'vae_decoder/model_fp16.onnx', to: 'vae_decoder/model.onnx' },
        { from: 'vae_decoder/model_fp16.onnx_data', to: 'vae_decoder/model_fp16.onnx_data' },
      ]),
    );
  });

  it('keeps the name of a fused graph that has no plain one beside it', () => {
    const paths = [...base, ...graphs.slice(0, 2), 'vae_decoder/model_cuda.onnx'];
    expect(selectModelFiles(paths).map(({ to }) => to)).toContain('vae_decoder/model_cuda.onnx');
  });

  it.each([
    ['scheduler/scheduler_config.json', 'scheduler/scheduler_config.json is missing.'],
    [
      'tokenizer/merges.txt',
      'tokenizer/merges.txt is missing, and there is no tokenizer/tokenizer.json in place of both.',
    ],
    [
      'tokenizer/vocab.json',
      'tokenizer/vocab.json is missing, and there is no tokenizer/tokenizer.json in place of both.',
    ],
    ['unet/model.onnx', 'unet/ holds no .onnx graph.'],
  ])('names %s when it is missing', (path, message) => {
    expect(() => selectModelFiles([...base, ...graphs].filter((other) => other !== path))).toThrow(message);
  });

  it('needs no model_index.json', () => {
    expect(selectModelFiles([...base.slice(1), ...graphs])).toHaveLength(6);
  });

  it('takes a model that lies in one folder below, with what that lacks from the root', () => {
    const below = graphs.map((path) => `onnx/${path}`);
    const root = [...base, 'unet/config.json', 'unet/diffusion_pytorch_model.safetensors'];
    expect(selectModelFiles([...root, ...below, 'onnx/scheduler/scheduler_config.json'])).toEqual(
      [
        ...['model_index.json', 'tokenizer/vocab.json', 'tokenizer/merges.txt'].map((path) => ({
          from: path,
          to: path,
        })),
        ...[...graphs, 'scheduler/scheduler_config.json'].map((path) => ({ from: `onnx/${path}`, to: path })),
      ].sort((a, b) => (a.to < b.to ? -1 : 1)),
    );
  });

  it.each<[what: string, paths: string[], message: string]>([
    ['an empty folder', [], 'it is empty.'],
    [
      'two models',
      [...graphs.map((path) => `b/${path}`), ...graphs.map((path) => `a/${path}`)],
      'it holds several models, in a/ and b/: name one of them.',
    ],
    [
      'a repository in the cache of the hub',
      ['refs/main', ...graphs.map((path) => `snapshots/0a1b/${path}`)],
      "it is a repository in the hub's cache: name the folder snapshots/0a1b in it.",
    ],
    [
      'weights of PyTorch',
      [...base, 'unet/diffusion_pytorch_model.safetensors'],
      'it holds weights of PyTorch (unet/diffusion_pytorch_model.safetensors) and no ONNX graphs: convert it first, with "optimum-cli export onnx',
    ],
    [
      'a LoRA of diffusers',
      ['pytorch_lora_weights.safetensors'],
      'it holds a LoRA or a textual inversion (pytorch_lora_weights.safetensors) and no model: it belongs to a Fine-Tune.',
    ],
    ['a checkpoint', ['v1-5.ckpt'], 'it holds weights of PyTorch (v1-5.ckpt) and no ONNX graphs: convert it first,'],
  ])('says what is there in place of a model: %s', (_, paths, message) => {
    expect(() => selectModelFiles(paths)).toThrow(message);
  });

  it('does not guess between two graphs', () => {
    const paths = [...base, ...graphs.slice(0, 2), 'vae_decoder/a.onnx', 'vae_decoder/b.onnx'];
    expect(() => selectModelFiles(paths)).toThrow('vae_decoder/ holds a.onnx, b.onnx, and none of them is model.onnx.');
  });
});

describe(isSafePath.name, () => {
  it('accepts only paths that stay inside the folder they are joined to', () => {
    const root = resolve('/models/x');
    const segment = fc.constantFrom('..', '.', '', 'a', 'a..b', '...', '\\', 'c:', '\0', 'unet', 'é');
    fc.assert(
      fc.property(fc.array(segment, { maxLength: 6 }), (segments) => {
        const path = segments.join('/');
        if (isSafePath(path)) expect(resolve(join(root, path)).startsWith(`${root}${sep}`)).toBe(true);
      }),
    );
  });

  it.each(['unet/weights.pb', 'a', 'a..b', '...', 'tokenizer/é.json'])('accepts %s', (path) => {
    expect(isSafePath(path)).toBe(true);
  });

  it.each(['', '/', '/a', 'a/', 'a//b', '.', '..', '../a', 'a/../b', 'a\\b', 'c:/a', 'a\0b', 'a\nb', 'a'.repeat(513)])(
    'refuses %j',
    (path) => {
      expect(isSafePath(path)).toBe(false);
    },
  );
});

describe(isModelName.name, () => {
  it.each(['sd1.5', 'shapes', '0', 'a'.repeat(64), 'my_model-2'])('accepts %s', (name) =>
    expect(isModelName(name)).toBe(true),
  );

  it.each(['', '.sd', '-a', 'SD', 'a b', 'a/b', '..', 'a\n', 'é', 'upscalers', 'a'.repeat(65)])('refuses %j', (name) =>
    expect(isModelName(name)).toBe(false),
  );
});
