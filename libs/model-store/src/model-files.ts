import { cures, defaultsFile } from '@app/diffusion/files';
import { graphParts, placeInModel } from './model-root';
import { ModelStoreError } from './model-store-error';

/** What {@link isModelName} accepts, for a person. */
export const modelNameRule = '1 to 64 lower-case letters, digits, ".", "_" or "-", beginning with a letter or a digit';
const modelNamePattern = /^[a-z0-9][a-z0-9._-]{0,63}$/;

/** The folder of the upscalers, which is in the models folder but is not a model. */
export const upscalersFolder = 'upscalers';

/** Whether a model may have this name. It is a folder's name too, so it must not lead out of the models folder. */
export const isModelName = (name: string): boolean => modelNamePattern.test(name) && name !== upscalersFolder;

/** @throws ModelStoreError `InvalidModelName` saying what is accepted. */
export function checkModelName(name: string): string {
  if (isModelName(name)) return name;
  if (name === upscalersFolder)
    throw new ModelStoreError(
      'InvalidModelName',
      `"${name}" is the folder of the enlarging models: take another name.`,
    );
  throw new ModelStoreError('InvalidModelName', `"${name}" is no model name: ${modelNameRule}.`);
}

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
