/** The folders of `src` in layers, the lowest first. */
const layers = [
  ['tensor'],
  ['random', 'safetensors', 'onnx'],
  ['gguf'],
  ['weights'],
  ['graph', 'tokenizer', 'schedulers'],
  ['architectures'],
  ['sessions'],
  ['adapters', 'autoencoders', 'upscaling', 'safety'],
  ['conditioners', 'denoisers'],
  ['families'],
  ['pipelines'],
  ['training'],
];

/** What each may import, types included: the layers before its own, and errors. ESLint holds it. */
export const directions = Object.fromEntries(
  layers.flatMap((own, i) => own.map((name) => [name, ['errors.ts', ...layers.slice(0, i).flat()]])),
);
