import { cures, defaultsFile, denoiserFolders, partFolders, safetyFolder, vaeFile } from '@app/diffusion/files';
import { ModelStoreError } from './model-store-error';

/** Whether a path from a listing stays inside the folder it is joined to, on every platform. */
export function isSafePath(path: string): boolean {
  // eslint-disable-next-line no-control-regex -- the pattern rejects control characters
  if (path.length > 512 || /[\\:\u0000-\u001f]/.test(path)) return false;
  return path.split('/').every((segment) => segment !== '' && segment !== '.' && segment !== '..');
}

/** Optional files of a model that its pictures do not depend on: a record has the defaults that it was drawn with. */
export const besideParts = ['preview.json', defaultsFile];

/** Files that are taken by their names, and belong to none of the parts. */
const ofWholeModel = ['model_index.json', 'scheduler/scheduler_config.json', vaeFile, ...besideParts];
const ofTokenizer = /^tokenizer(_2)?\/[^/.][^/]*\.(json|txt)$/;

/** Name of an installed checkpoint. */
export const checkpointFile = 'model.safetensors';

/** A file of a model: its path in the source, and its path in the installed model. */
export interface ModelFile {
  from: string;
  to: string;
}

/** What an operator says that a source is. */
export type AddedKind = 'model' | 'control' | 'safety';

/** Precisions of weights that a part has files of, the best first: what is downloaded should be small. */
const variants = { asRead: ['', '.fp16', '.bf16', '.fp32'], smallFirst: ['.fp16', '.bf16', '', '.fp32'] };

/**
 * Selects the files of an installed model out of everything in a folder or repository: a folder of diffusers, of which
 * each part's configuration and one set of weights; an ONNX export; or a checkpoint. Weights of other frameworks and
 * other precisions are left out, and so is the safety checker of a model, unless that is what is asked for.
 * @param source paths relative to the folder or repository, with forward slashes
 * @throws ModelStoreError `InvalidModel` naming each part that is missing, or what is there in place of a model
 */
export function selectModelFiles(
  source: readonly string[],
  prefers: keyof typeof variants = 'asRead',
  kind: AddedKind = 'model',
): ModelFile[] {
  if (kind === 'safety') return safetyCheckerIn(source, variants[prefers]);
  const placed = placeInModel(source);
  const paths = [...placed.keys()];
  const hasDenoiser = paths.some((path) => denoiserFolders().includes(path.split('/')[0]));
  const isBare = !hasDenoiser && !paths.some(isCheckpoint);
  if (isBare && paths.includes(`${safetyFolder}/config.json`)) return safetyCheckerIn(paths, variants[prefers]);
  const inParts = paths.some((path) => usableDenoiser.test(path)) || (hasDenoiser && !paths.some(isCheckpoint));
  const found = paths.filter((path) => ofWholeModel.includes(path) || ofTokenizer.test(path)).map(unmoved);
  const faults: string[] = [];
  if (inParts)
    for (const part of partFolders()) {
      const inside = paths.filter((path) => path.startsWith(`${part}/`)).map((path) => path.slice(part.length + 1));
      if (inside.length === 0) continue;
      const isReplaced = part.startsWith('vae') && placed.has(vaeFile);
      const { files, fault }: SelectedPart = isReplaced
        ? { files: configsIn(inside) }
        : selectPart(part, inside, variants[prefers]);
      found.push(...files.map(({ from, to }) => ({ from: `${part}/${from}`, to: `${part}/${to}` })));
      if (fault !== undefined) faults.push(fault);
    }
  else found.push(...(barePartIn(paths, variants[prefers]) ?? checkpointIn(paths)));
  if (faults.length > 0) throw new ModelStoreError('InvalidModel', faults.join('\n'));
  return found.map(({ from, to }) => ({ from: placed.get(from)!, to })).sort((a, b) => (a.to < b.to ? -1 : 1));
}

const denoisers = denoiserFolders().join('|');
const usableDenoiser = new RegExp(`^(?:${denoisers})/[^/]+\\.(onnx|safetensors)$`);
const bareWeights = /^diffusion_pytorch_model.*\.safetensors$/;
const unmoved = (path: string): ModelFile => ({ from: path, to: path });
const isCheckpoint = (path: string): boolean => /^[^/.][^/]*\.safetensors$/.test(path) && path !== vaeFile;

/** The files of a part that lies at the root: a ControlNet of diffusers. */
function barePartIn(paths: readonly string[], precisions: readonly string[]): ModelFile[] | undefined {
  const inside = paths.filter((path) => !path.includes('/'));
  if (!inside.includes('config.json') || !inside.some((path) => bareWeights.test(path))) return undefined;
  return selectPart('', inside, precisions).files;
}

/** The files of a safety checker, in its folder of a model or by themselves. */
function safetyCheckerIn(paths: readonly string[], precisions: readonly string[]): ModelFile[] {
  const root = paths.includes(`${safetyFolder}/config.json`) ? `${safetyFolder}/` : '';
  const inside = paths.filter((path) => path.startsWith(root)).map((path) => path.slice(root.length));
  if (!inside.includes('config.json'))
    throw new ModelStoreError('InvalidModel', `it holds no ${safetyFolder}/config.json. ${cures.otherSafety}`);
  const { files, fault } = selectPart(safetyFolder, inside, precisions);
  if (fault !== undefined) throw new ModelStoreError('InvalidModel', fault);
  return files.map(({ from, to }) => ({ from: `${root}${from}`, to: `${safetyFolder}/${to}` }));
}

function checkpointIn(paths: readonly string[]): ModelFile[] {
  const found = paths.filter(isCheckpoint);
  if (found.length === 1) return [{ from: found[0], to: checkpointFile }];
  const several = `it holds several checkpoints, ${found.slice(0, 8).join(', ')}. ${cures.nameOne}`;
  throw new ModelStoreError('InvalidModel', found.length > 1 ? several : otherLayout(paths));
}

const configsIn = (inside: readonly string[]): ModelFile[] =>
  inside.filter((path) => path === 'config.json').map(unmoved);

/** The files of a part, or why nothing there can be drawn with. */
interface SelectedPart {
  files: ModelFile[];
  fault?: string;
}

function selectPart(part: string, inside: readonly string[], precisions: readonly string[]): SelectedPart {
  for (const variant of precisions)
    for (const stem of ['diffusion_pytorch_model', 'model']) {
      const weights = inside.filter((path) => isOfSet(path, stem, variant));
      if (weights.length > 0) return { files: [...configsIn(inside), ...weights.map(unmoved)] };
    }
  const graphs = inside.filter((path) => path.endsWith('.onnx') && !path.includes('/'));
  const plain = plainNames.find((name) => graphs.includes(name)) ?? graphs[0];
  if (graphs.length > 1 && !plainNames.includes(plain))
    return {
      files: [],
      fault: `${part}/ holds ${graphs.join(', ')}, and none of them is model.onnx. ${cures.nameOne}`,
    };
  if (plain === undefined) return { files: [], fault: missingWeights(part, inside) };
  const others = graphs.filter((path) => path !== plain);
  const data = inside.filter(
    (path) =>
      !path.endsWith('.onnx') &&
      !foreignWeights.test(path) &&
      !/(^|\/)\./.test(path) &&
      !others.some((other) => belongsTo(path, other, plain)),
  );
  // The graph itself names its external data, so the graph may be renamed to the name that loaders expect.
  return { files: [{ from: plain, to: 'model.onnx' }, ...data.map(unmoved)] };
}

/** Whether a file is the weights of this name and precision, one of their shards, or the shards' index. */
function isOfSet(path: string, stem: string, variant: string): boolean {
  if (path === `${stem}${variant}.safetensors` || path === `${stem}${variant}.safetensors.index.json`) return true;
  if (path === `${stem}.safetensors.index${variant}.json`) return true;
  const [, before, after] = /^(.+)-\d+-of-\d+(\.\w+)?\.safetensors$/.exec(path) ?? [];
  return before !== undefined && `${before}${after ?? ''}` === `${stem}${variant}`;
}

/** Names that exporters give a graph, the best first. */
const plainNames = ['model.onnx', 'model_fp32.onnx', 'model_fp16.onnx', 'model.fp16.onnx'];

/** Weights for other frameworks and runtimes that repositories keep beside the ONNX files. */
const foreignWeights =
  /\.(safetensors|msgpack|ckpt|h5|pt|pth|tflite|mlmodel|mlpackage|gguf|xml|mapping|md|gitattributes)$|(^|\/)((diffusion_)?pytorch_model|flax_model|tf_model|openvino_)[^/]*$/i;

/** Whether a data file is named after `graph` (`model_fp16.onnx_data`) and not after the one that is kept. */
function belongsTo(path: string, graph: string, kept: string): boolean {
  const named = (by: string): boolean => path.startsWith(by) || path.startsWith(`${by.replace(/\.onnx$/, '')}.`);
  return named(graph) && !(kept.length > graph.length && named(kept));
}

function missingWeights(part: string, inside: readonly string[]): string {
  const pickled = inside.find((path) => runsCode.test(path));
  return pickled === undefined
    ? `${part}/ holds no weights. ${cures.installAgain}`
    : `${part}/ has its weights in ${pickled}, ${whyNot}. ${cures.safetensors}`;
}

/** Pickled Python objects. */
const runsCode = /\.(ckpt|bin|pt|pth)$/i;
const whyNot = 'which runs code when it is read';

/** A part of a model, at the root or one folder below. */
const partPath = new RegExp(`^([^/]+/)?(?:${denoisers})/[^/]+\\.(onnx|safetensors|bin)$`);

/** Entries that a model may have outside the folder of its graphs. */
const shared =
  /^(model_index\.json|preview\.json|darkroom\.json|vae\.safetensors|(scheduler|tokenizer|tokenizer_2)\/.*)$/;

/**
 * Finds where in a repository or folder the model lies: at its root, or one folder below, such as `onnx/`; what that
 * folder lacks of tokenizer, scheduler and single files is taken from the root.
 * @param paths relative, with forward slashes
 * @returns each path in the source by its path in the model
 * @throws ModelStoreError `InvalidModel` if there are several
 */
function placeInModel(paths: readonly string[]): Map<string, string> {
  const roots = [...new Set(paths.flatMap((path) => (partPath.test(path) ? (partPath.exec(path)![1] ?? '') : [])))];
  const inPlace = new Map(paths.map((path) => [path, path]));
  if (roots.length === 0 || roots.includes('') || paths.some(isCheckpoint)) return inPlace;
  if (roots.length > 1)
    throw new ModelStoreError('InvalidModel', `it holds several models, in ${roots.join(' and ')}. ${cures.nameOne}`);
  const [root] = roots;
  const below = paths.filter((path) => path.startsWith(root)).map((path) => [path.slice(root.length), path] as const);
  return new Map([...[...inPlace].filter(([path]) => shared.test(path)), ...below]);
}

/** Content in place of a model, and what to do with it. */
function otherLayout(paths: readonly string[]): string {
  if (paths.length === 0) return `it is empty. ${cures.installAgain}`;
  const snapshots = [...new Set(paths.flatMap((path) => /^snapshots\/[^/]+(?=\/)/.exec(path)?.[0] ?? []))];
  if (snapshots.length > 0)
    return `it is a repository in the hub's cache, with the models in ${snapshots.join(' and ')}. ${cures.nameOne}`;
  const pickled = paths.find((path) => runsCode.test(path));
  if (pickled !== undefined) return `it has its weights in ${pickled}, ${whyNot}. ${cures.safetensors}`;
  const quantised = paths.find((path) => path.endsWith('.gguf'));
  if (quantised !== undefined) return `it has files of GGUF, such as ${quantised}. ${cures.nameOne}`;
  const below = paths.filter((path) => path.endsWith('.safetensors') && path.split('/').length === 2);
  if (below.length > 0)
    return `it has neither ${denoiserFolders().join('/ nor ')}/, and below it are ${below.slice(0, 8).join(', ')}. ${cures.nameOne}`;
  return `it holds no ${denoiserFolders().join('/, no ')}/ and no .safetensors file. ${cures.installAgain}`;
}

/** Why a file cannot be a model, by its name; undefined for what is to be read. */
export function problemOfFile(path: string): string | undefined {
  if (/\.(?:safetensors|gguf)$/.test(path)) return undefined;
  if (runsCode.test(path)) return `${path} is a file of Python objects, ${whyNot}. ${cures.safetensors}`;
  if (path.endsWith('.onnx')) return `${path} is one graph: name the folder with all parts of the model.`;
  return `${path} is no .safetensors or .gguf file, and no folder with a model.`;
}
