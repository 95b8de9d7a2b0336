import { cures, defaultsFile, weightsKind } from '@app/diffusion/files';
import { ModelStoreError } from './model-store-error';

/** Whether a path from a listing stays inside the folder it is joined to, on every platform. */
export function isSafePath(path: string): boolean {
  // eslint-disable-next-line no-control-regex -- the pattern rejects control characters
  if (path.length > 512 || /[\\:\u0000-\u001f]/.test(path)) return false;
  return path.split('/').every((segment) => segment !== '' && segment !== '.' && segment !== '..');
}

/** Optional files of a model that its pictures do not depend on: a record has the defaults that it was drawn with. */
export const besideParts = ['preview.json', defaultsFile];

/** Files that are taken by their names, and belong to none of the parts with a graph. */
const ofWholeModel = ['model_index.json', 'scheduler/scheduler_config.json', ...besideParts];

/** Weights for other frameworks and runtimes that repositories keep beside the ONNX files. */
const foreignWeights =
  /\.(safetensors|msgpack|ckpt|h5|pt|pth|tflite|mlmodel|mlpackage|gguf|xml|mapping|md|gitattributes)$|(^|\/)((diffusion_)?pytorch_model|flax_model|tf_model|openvino_)[^/]*$/i;

/** A file of a model: its path in the source, and its path in the installed model. */
export interface ModelFile {
  from: string;
  to: string;
}

/**
 * Selects the files of an installed model out of everything in a repository or folder: model_index.json if there is
 * one, preview.json, darkroom.json, the files of the scheduler and the tokenizer, and for each part its config, one
 * plain graph with its external data, and a graph fused for CUDA if there is one. Weights of other frameworks, other
 * precisions, the safety checker and the VAE encoder are left out.
 * @param source paths relative to the folder or repository, with forward slashes.
 * @throws ModelStoreError `InvalidModel` naming each missing file, or what is there in place of a model.
 */
export function selectModelFiles(source: readonly string[]): ModelFile[] {
  const { files, faults } = findModelFiles(source);
  if (faults.length > 0) throw new ModelStoreError('InvalidModel', faults.join('\n'));
  return files;
}

/**
 * The files of a model as far as they are there, and a sentence for each that is missing.
 * @throws ModelStoreError `InvalidModel` saying what is there in place of a model
 */
export function findModelFiles(source: readonly string[]): { files: ModelFile[]; faults: string[] } {
  const placed = placeInModel(source);
  const paths = [...placed.keys()];
  const schedulerFile = 'scheduler/scheduler_config.json';
  const faults = [
    ...(placed.has(schedulerFile) ? [] : [`${schedulerFile} is missing. ${cures.installAgain}`]),
    ...missingVocabulary(placed),
  ];
  const found: ModelFile[] = paths
    .filter((path) => ofWholeModel.includes(path) || /^tokenizer\/[^/.][^/]*\.(json|txt)$/.test(path))
    .map((path) => ({ from: path, to: path }));
  for (const part of graphParts) {
    const inside = paths
      .filter((path) => path.startsWith(`${part}/`) && !foreignWeights.test(path) && !/(^|\/)\./.test(path))
      .map((path) => path.slice(part.length + 1));
    const { files, fault } = selectPart(part, inside);
    found.push(...files.map(({ from, to }) => ({ from: `${part}/${from}`, to: `${part}/${to}` })));
    if (fault !== undefined) faults.push(fault);
  }
  const files = found.map(({ from, to }) => ({ from: placed.get(from)!, to })).sort((a, b) => (a.to < b.to ? -1 : 1));
  return { files, faults };
}

function missingVocabulary(placed: ReadonlyMap<string, string>): string[] {
  const missing = ['tokenizer/vocab.json', 'tokenizer/merges.txt'].filter((path) => !placed.has(path));
  if (missing.length === 0 || placed.has('tokenizer/tokenizer.json')) return [];
  const are = missing.length > 1 ? 'are' : 'is';
  return [
    `${missing.join(' and ')} ${are} missing, and there is no tokenizer/tokenizer.json in place of both. ${cures.installAgain}`,
  ];
}

/** A graph fused for CUDA, which a model may have beside the plain one. */
const fusedGraph = 'model_cuda.onnx';
/** What exporters call a plain graph, the best first. */
const plainNames = ['model.onnx', 'model_fp32.onnx', 'model_fp16.onnx', 'model.fp16.onnx'];

/** The files of a part, or why nothing there can be drawn with. */
function selectPart(part: string, inside: readonly string[]): { files: ModelFile[]; fault?: string } {
  const graphs = inside.filter((path) => path.endsWith('.onnx') && !path.includes('/'));
  if (graphs.length === 0) return { files: [], fault: `${part}/ holds no .onnx graph. ${cures.installAgain}` };
  const plainOnes = graphs.filter((path) => path !== fusedGraph);
  const plain = plainNames.find((name) => plainOnes.includes(name)) ?? plainOnes[0];
  if (plainOnes.length > 1 && !plainNames.includes(plain))
    return {
      files: [],
      fault: `${part}/ holds ${plainOnes.join(', ')}, and none of them is model.onnx. ${cures.renameGraph}`,
    };
  const kept = graphs.filter((path) => path === plain || path === fusedGraph);
  const left = graphs.filter((path) => !kept.includes(path));
  const data = inside.filter((path) => !path.endsWith('.onnx') && !left.some((other) => belongsTo(path, other, kept)));
  // The graph itself names its external data, so the graph may be renamed to the name that loaders expect.
  return { files: [...kept, ...data].map((from) => ({ from, to: from === plain ? 'model.onnx' : from })) };
}

/** Whether a data file is named after `graph` (`model_fp16.onnx_data`) and not after a graph that is kept. */
function belongsTo(path: string, graph: string, kept: readonly string[]): boolean {
  const named = (by: string): boolean => path.startsWith(by) || path.startsWith(`${by.replace(/\.onnx$/, '')}.`);
  return named(graph) && !kept.some((other) => other.length > graph.length && named(other));
}

/** The parts of a text-to-image model that have a graph. */
export const graphParts = ['text_encoder', 'unet', 'vae_decoder'] as const;

/** A graph of a part, at the root or one folder below. */
const graphPath = new RegExp(`^([^/]+/)?(${graphParts.join('|')})/[^/]+\\.onnx$`);

/** What a model may have outside the folder of its graphs. */
const shared = /^(model_index\.json|preview\.json|darkroom\.json|(scheduler|tokenizer)\/.*)$/;

/**
 * Finds where in a repository or folder the model lies: at its root, or one folder below, such as `onnx/`; what that
 * folder lacks of tokenizer, scheduler and single files is taken from the root.
 * @param paths relative, with forward slashes
 * @returns each path in the source by its path in the model
 * @throws ModelStoreError `InvalidModel` saying what it is in place of a model
 */
function placeInModel(paths: readonly string[]): Map<string, string> {
  const partsBelow = new Map<string, Set<string>>();
  for (const path of paths) {
    const [, root = '', part] = graphPath.exec(path) ?? [];
    if (part !== undefined) partsBelow.set(root, (partsBelow.get(root) ?? new Set()).add(part));
  }
  const inPlace = new Map(paths.map((path) => [path, path]));
  if (partsBelow.has('')) return inPlace;
  const roots = [...partsBelow.keys()].filter((root) => partsBelow.get(root)!.size === graphParts.length).sort();
  if (roots.length > 1)
    throw new ModelStoreError('InvalidModel', `it holds several models, in ${roots.join(' and ')}: name one of them.`);
  if (roots.length === 0) {
    const found = otherLayout(paths);
    if (found !== undefined) throw new ModelStoreError('InvalidModel', found);
    return inPlace;
  }
  const [root] = roots;
  const below = paths.filter((path) => path.startsWith(root)).map((path) => [path.slice(root.length), path] as const);
  return new Map([...[...inPlace].filter(([path]) => shared.test(path)), ...below]);
}

/**
 * What people have in place of ONNX graphs, and what to do with it, in one sentence; undefined if
 * nothing is recognised.
 */
function otherLayout(paths: readonly string[]): string | undefined {
  if (paths.length === 0) return `it is empty. ${cures.installAgain}`;
  const snapshots = [...new Set(paths.flatMap((path) => /^snapshots\/[^/]+(?=\/)/.exec(path)?.[0] ?? []))];
  if (snapshots.length > 0)
    return `it is a repository in the hub's cache: name the folder ${snapshots.join(' or ')} in it.`;
  const weights = paths.find((path) => weightsOfPyTorch.test(path));
  if (weights === undefined || paths.some((path) => path.endsWith('.onnx'))) return undefined;
  const trained = paths.find((path) => weightsOfDiffusers.test(path));
  if (trained !== undefined && !paths.includes('model_index.json'))
    return `it holds a LoRA or a textual inversion (${trained}) and no model: ${toUpload}`;
  return `it holds weights of PyTorch (${weights}) and no ONNX graphs: ${toConvert}`;
}

const weightsOfPyTorch = /\.(safetensors|ckpt|bin|pt|pth)$/;
/** What diffusers calls a LoRA and a textual inversion that it has trained. */
const weightsOfDiffusers = /^(pytorch_lora_weights|learned_embeds)\.(safetensors|bin)$/;

/** What to do with weights that are no graph. */
const toConvert = 'convert it first, with "optimum-cli export onnx --model <folder> <new folder>" for example.';

const toUpload =
  'it belongs to a Fine-Tune. Send it as safetensors, with PUT /v1/finetunes/<id>/weights; its base model is what is added here.';

/** Why a single file is no model, and what to do with it. */
export async function problemOfFile(path: string): Promise<string> {
  const kind = path.endsWith('.safetensors') ? await weightsKind(path).catch(() => undefined) : undefined;
  if (kind !== undefined)
    return `${path} is a ${kind === 'lora' ? 'LoRA' : 'textual inversion'} and no model: ${toUpload}`;
  if (weightsOfPyTorch.test(path))
    return `${path} is a checkpoint of PyTorch, and no folder with ONNX graphs: ${toConvert}`;
  if (path.endsWith('.onnx')) return `${path} is one graph: name the folder with all parts of the model.`;
  return `${path} is a file, and no folder with a model.`;
}
