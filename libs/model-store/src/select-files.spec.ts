import { join, resolve, sep } from 'node:path';
import * as fc from 'fast-check';
import { isSafePath, selectModelFiles } from './select-files';
import { isModelName } from './model-names';

const base = ['model_index.json', 'scheduler/scheduler_config.json', 'tokenizer/vocab.json', 'tokenizer/merges.txt'];
const configs = ['unet/config.json', 'text_encoder/config.json', 'vae/config.json'];
const weights = [
  'unet/diffusion_pytorch_model.safetensors',
  'text_encoder/model.safetensors',
  'vae/diffusion_pytorch_model.safetensors',
];
const graphs = ['text_encoder/model.onnx', 'unet/model.onnx', 'vae_decoder/model.onnx'];
const small = weights.map((path) => path.replace('.safetensors', '.fp16.safetensors'));
const names = (paths: readonly string[], prefers?: 'smallFirst'): string[] =>
  selectModelFiles(paths, prefers).map(({ to }) => to);

describe(selectModelFiles.name, () => {
  it('selects configurations and one set of weights of a folder of diffusers, sorted', () => {
    const others = [
      ...['README.md', 'v1-5-pruned.safetensors', 'v1-5-pruned.ckpt', 'safety_checker/model.safetensors'],
      ...['unet/diffusion_pytorch_model.non_ema.safetensors', 'unet/diffusion_pytorch_model.bin'],
      ...['unet/model.onnx', 'unet/model.onnx_data', 'vae_encoder/model.onnx', 'text_encoder/flax_model.msgpack'],
    ];
    const wanted = [...base, ...configs, 'preview.json'];
    expect(names([...wanted, ...weights, ...small])).toEqual([...wanted, ...weights].sort());
    expect(names([...wanted, ...weights, ...small], 'smallFirst')).toEqual([...wanted, ...small].sort());
    expect(names([...wanted, ...weights, ...others.slice(0, 6)], 'smallFirst')).toEqual([...wanted, ...weights].sort());
  });

  it.each([
    [
      'unet/diffusion_pytorch_model-00001-of-00002.safetensors',
      'unet/diffusion_pytorch_model-00002-of-00002.safetensors',
      'unet/diffusion_pytorch_model.safetensors.index.json',
    ],
    [
      'unet/diffusion_pytorch_model.fp16-00001-of-00002.safetensors',
      'unet/diffusion_pytorch_model.fp16-00002-of-00002.safetensors',
      'unet/diffusion_pytorch_model.safetensors.index.fp16.json',
    ],
    [
      'unet/diffusion_pytorch_model-00001-of-00001.fp16.safetensors',
      'unet/diffusion_pytorch_model.fp16.safetensors.index.json',
    ],
  ])('selects shards with their index: %s', (...shards) => {
    const rest = [...base, ...configs, ...weights.slice(1)];
    const other = 'unet/diffusion_pytorch_model.bf16.safetensors';
    expect(names([...rest, ...shards, other], shards[0].includes('fp16') ? 'smallFirst' : undefined)).toEqual(
      [...rest, ...shards].sort(),
    );
  });

  it('selects what an export has: graphs with external data of any name, and configurations', () => {
    const more = ['unet/weights.pb', 'unet/onnx__MatMul_1234', 'unet/config.json', 'text_encoder/model.onnx.data'];
    const others = ['unet/model_fp16.onnx', 'unet/model_fp16.onnx_data', 'unet/openvino_model.xml', 'unet/.cache'];
    expect(names([...base, ...graphs, ...more, ...others])).toEqual([...base, ...graphs, ...more].sort());
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

  it('takes a model that lies in one folder below, with what that lacks from the root', () => {
    const below = graphs.map((path) => `onnx/${path}`);
    const root = [...base, 'unet/config.json', 'unet/flax_model.msgpack'];
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

  it('takes the only checkpoint, with an autoencoder and defaults beside it', () => {
    const beside = ['darkroom.json', 'vae.safetensors'];
    expect(selectModelFiles(['README.md', 'dreamshaper_8.safetensors', ...beside])).toEqual([
      { from: 'darkroom.json', to: 'darkroom.json' },
      { from: 'dreamshaper_8.safetensors', to: 'model.safetensors' },
      { from: 'vae.safetensors', to: 'vae.safetensors' },
    ]);
    // Parts whose weights cannot be read are passed over.
    expect(names(['one.safetensors', 'unet/diffusion_pytorch_model.bin'])).toEqual(['model.safetensors']);
  });

  it.each<[what: string, paths: string[], message: string]>([
    ['an empty folder', [], 'it is empty.'],
    [
      'two models',
      [...graphs.map((path) => `b/${path}`), ...graphs.map((path) => `a/${path}`)],
      'it holds several models, in b/ and a/. Name the one',
    ],
    ['two checkpoints', ['a.safetensors', 'b.safetensors'], 'it holds several checkpoints, a.safetensors, b.safetens'],
    [
      'checkpoints below',
      ['x/a.safetensors'],
      'it has neither transformer/ nor unet/, and below it are x/a.safetensors. Name the one',
    ],
    [
      'a repository in the cache of the hub',
      ['refs/main', ...weights.map((path) => `snapshots/0a1b/${path}`)],
      "it is a repository in the hub's cache, with the models in snapshots/0a1b. Name the one",
    ],
    ['a file that runs code', ['v1-5.ckpt'], 'it has its weights in v1-5.ckpt, which runs code when it is read.'],
    [
      'a part that runs code',
      [...base, ...weights.slice(0, 1), 'text_encoder/pytorch_model.bin'],
      'text_encoder/ has its weights in pytorch_model.bin, which runs code when it is read.',
    ],
    ['a part without weights', [...base, 'unet/config.json'], 'unet/ holds no weights.'],
    ['quantised weights', ['flux-Q4_0.gguf'], 'it has files of GGUF, such as flux-Q4_0.gguf.'],
    ['anything else', ['README.md'], 'it holds no transformer/, no unet/ and no .safetensors file.'],
    [
      'several graphs',
      [...base, ...graphs.slice(0, 2), 'vae_decoder/a.onnx', 'vae_decoder/b.onnx'],
      'vae_decoder/ holds a.onnx, b.onnx, and none of them is model.onnx.',
    ],
  ])('says what is there in place of a model: %s', (_, paths, message) => {
    expect(() => selectModelFiles(paths)).toThrow(message);
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
