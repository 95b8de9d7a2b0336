import { cures, weightsKind } from '@app/diffusion/files';
import { ModelStoreError } from './model-store-error';

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
export function placeInModel(paths: readonly string[]): Map<string, string> {
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
export const toConvert = 'convert it first, with "optimum-cli export onnx --model <folder> <new folder>" for example.';

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
