import { ModelStoreError } from './model-store-error';

/** The parts of a text-to-image model that hold a graph. */
export const graphParts = ['text_encoder', 'unet', 'vae_decoder'] as const;

const modelNamePattern = /^[a-z0-9][a-z0-9._-]{0,63}$/;

/** The folder of enlarging models, which lies in the models folder and is no model itself. */
const upscalersFolder = 'upscalers';

/** Whether a model may be installed under this name. It is a folder's name too, so it cannot leave the models folder. */
export const isModelName = (name: string): boolean => modelNamePattern.test(name) && name !== upscalersFolder;

/** @throws ModelStoreError `InvalidModelName` saying what is accepted. */
export function checkModelName(name: string): string {
  if (isModelName(name)) return name;
  if (name === upscalersFolder)
    throw new ModelStoreError(
      'InvalidModelName',
      `"${name}" is the folder of the enlarging models: take another name.`,
    );
  throw new ModelStoreError(
    'InvalidModelName',
    `"${name}" is no model name: 1 to 64 lower-case letters, digits, ".", "_" or "-", beginning with a letter or a digit.`,
  );
}

/** Whether a path from a listing stays inside the folder it is joined to, on every platform. */
export function isSafePath(path: string): boolean {
  // eslint-disable-next-line no-control-regex -- control characters are what is refused
  if (path.length > 512 || /[\\:\u0000-\u001f]/.test(path)) return false;
  return path.split('/').every((segment) => segment !== '' && segment !== '.' && segment !== '..');
}

/** Weights for other frameworks and runtimes that repositories keep beside the ONNX files. */
const foreignWeights =
  /\.(safetensors|msgpack|ckpt|h5|pt|pth|tflite|mlmodel|mlpackage|gguf|xml|mapping|md|gitattributes)$|(^|\/)((diffusion_)?pytorch_model|flax_model|tf_model|openvino_)[^/]*$/i;

/** A file of a model: where it lies in the source, and where it belongs in an installed model. */
export interface ModelFile {
  from: string;
  to: string;
}

/**
 * Picks what an installed model consists of out of everything in a repository or folder: model_index.json, the scheduler's
 * and the tokenizer's files, and of each part its config, one plain graph with its external data, and a graph fused for CUDA
 * where one lies beside it, and preview.json. Weights of other frameworks, other precisions, the safety checker and the VAE encoder stay out.
 * @param paths paths relative to the model's root, with forward slashes.
 * @throws ModelStoreError `InvalidModel` naming the first thing that is missing.
 */
export function selectModelFiles(paths: readonly string[]): ModelFile[] {
  const all = new Set(paths);
  const files: ModelFile[] = [];
  const take = (path: string): void => {
    if (!all.has(path)) throw new ModelStoreError('InvalidModel', `${path} is missing.`);
    files.push({ from: path, to: path });
  };
  take('model_index.json');
  take('scheduler/scheduler_config.json');
  for (const path of paths) if (/^tokenizer\/[^/.][^/]*\.(json|txt)$/.test(path)) files.push({ from: path, to: path });
  if (!all.has('tokenizer/tokenizer.json') && !(all.has('tokenizer/vocab.json') && all.has('tokenizer/merges.txt')))
    throw new ModelStoreError('InvalidModel', 'tokenizer/vocab.json and tokenizer/merges.txt are missing.');
  if (all.has('preview.json')) take('preview.json');
  for (const part of graphParts) {
    const inside = paths
      .filter((path) => path.startsWith(`${part}/`) && !foreignWeights.test(path) && !/(^|\/)\./.test(path))
      .map((path) => path.slice(part.length + 1));
    files.push(...selectPart(part, inside).map(({ from, to }) => ({ from: `${part}/${from}`, to: `${part}/${to}` })));
  }
  return files.sort((a, b) => (a.to < b.to ? -1 : 1));
}

/** A graph fused for CUDA, which a model may keep beside the plain one. */
const fusedGraph = 'model_cuda.onnx';

function selectPart(part: string, inside: readonly string[]): ModelFile[] {
  const graphs = inside.filter((path) => path.endsWith('.onnx') && !path.includes('/'));
  const plain = choosePlain(
    part,
    graphs.filter((path) => path !== fusedGraph),
  );
  const kept = graphs.filter((path) => path === plain || path === fusedGraph);
  if (kept.length === 0) throw new ModelStoreError('InvalidModel', `${part}/ holds no .onnx graph.`);
  const left = graphs.filter((path) => !kept.includes(path));
  const data = inside.filter((path) => !path.endsWith('.onnx') && !left.some((other) => belongsTo(path, other, kept)));
  // External data is found by the name in the graph, so the graph itself may be renamed to the name that loaders expect.
  return [...kept, ...data].map((from) => ({ from, to: from === plain ? 'model.onnx' : from }));
}

function choosePlain(part: string, plain: readonly string[]): string | undefined {
  for (const name of ['model.onnx', 'model_fp32.onnx', 'model_fp16.onnx', 'model.fp16.onnx'])
    if (plain.includes(name)) return name;
  if (plain.length <= 1) return plain[0];
  throw new ModelStoreError('InvalidModel', `${part}/ holds ${plain.join(', ')}, and none of them is model.onnx.`);
}

/** Whether a data file carries the name of `graph` (`model_fp16.onnx_data`) rather than that of a graph that is kept. */
function belongsTo(path: string, graph: string, kept: readonly string[]): boolean {
  const named = (by: string): boolean => path.startsWith(by) || path.startsWith(`${by.replace(/\.onnx$/, '')}.`);
  return named(graph) && !kept.some((other) => other.length > graph.length && named(other));
}
