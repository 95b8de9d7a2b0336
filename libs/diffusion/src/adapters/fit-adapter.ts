import { countOf, type NamedTensor } from '../weights/named-tensor';
import { quote } from '../safetensors/quote';
import type { Adapter, AdapterLayer, FittedAdapter, LowRankLayer, MergedTensor } from './adapter';
import type { PartName, PartTensors } from '../weights/original-names';
import { type Delta, deltasOf, type Pair } from './deltas';
import { parseKey } from './keys';
import { LayerNames, type Place, type Target } from './layer-names';
import type { Rows } from './matrices';
import { magnitudeOf, mergedTensor } from './merged-tensor';
import type { Scaling } from './scaling';
import { malformed, misfit, shapeText, tooComplex, type WeightsError } from './weights-error';
import { fitWord } from './words';

/**
 * Largest rank of a layer's adapter inputs; a LoRA of a higher one is merged, because at rank 160 the two factors of a
 * square layer of 320 channels are as large as its weight. Those of a wide one are not: at this rank a quarter.
 */
const maxInputRank = ([out, ...into]: readonly number[]): number => Math.max(128, Math.min(out, countOf(into)) / 8);

/**
 * Upper bound of a factor's rank, unless the shorter side of its weight is longer: a higher rank adds nothing.
 * Published LoRAs have ranks up to 1,024, whatever the layer.
 */
const maxRank = 1024;

/** Far beyond any strength that was trained with, and far below what makes float32 overflow. */
const largestScale = 1e6;

/** Most multiplications of a merge: some more than those of a DoRA of rank 128 on every layer of Z-Image. */
const maxMultiplications = 1e12;

const assumption =
  'The file does not say by how much its layers are to be scaled, so alpha is taken to be the rank: where pictures come out too strong or too weak, set another scale. If an adapter_config.json came with the file, it is the lora_alpha in there, divided by the r.';

/**
 * Finds the weights of a model that an adapter changes, by names and shapes alone. At most one layer of the file
 * changes a weight, so that the model's size and the ranks bound all further work.
 * @throws WeightsError if the file is malformed or for another family, if the model has a layer in another shape, or
 * lacks it; what a transformer lacks is left out and told, unless it lacks all of it
 */
export function fitAdapter(adapter: Adapter, model: PartTensors): FittedAdapter {
  const layers = new Map<PartName, Map<string, LowRankLayer>>();
  const merged = new Map<PartName, Map<string, MergedTensor>>();
  const hint = hintOf(adapter, model);
  const { sites, unmatched, note } = sitesOf(adapter, model, hint);
  let multiplications = 0;
  let isAssumed = false;
  for (const { layer, part, path, rows, changes } of sites)
    for (const { parameter, base, delta } of changes) {
      const { key } = layer;
      assertFits(key, delta, base.shape, hint);
      const scale = scaleOf(layer, delta, adapter.scalingOf(part, [path, parseKey(key)!.layer]));
      isAssumed ||= scale === undefined;
      if (!(Math.abs(scale ?? 1) <= largestScale))
        throw malformed(`The layer of ${quote(key)} has an alpha and a rank whose ratio is no usable number.`);
      const magnitude = parameter === 'weight' ? magnitudeOf(layer, base.shape, rows) : undefined;
      // Tables of embeddings are looked up in, and take no inputs.
      if (delta.pair && delta.pair.rank <= maxInputRank(base.shape) && !magnitude && !path.endsWith('_embedding'))
        entriesOf(layers, part).set(path, lowRankLayer(delta.pair, base.shape, scale ?? 1));
      else {
        multiplications += delta.innerRank * countOf(base.shape);
        entriesOf(merged, part).set(`${path}.${parameter}`, mergedTensor(base, delta, scale ?? 1, magnitude));
      }
    }
  if (multiplications > maxMultiplications)
    throw tooComplex(
      `To merge the file takes more than ${maxMultiplications} multiplications; its ranks are too high.`,
    );
  const words = adapter.words.map((word) => fitWord(word, model));
  const notes = [...note, ...(isAssumed ? [assumption] : [])].join(' ');
  return { kind: adapter.kind, layers, merged, words, unmatched, ...(notes && { note: notes }) };
}

/** A layer of a model, and what one of the file changes in it. */
interface Site extends Place {
  layer: AdapterLayer;
  rows?: Rows | undefined;
  changes: { parameter: 'weight' | 'bias'; base: NamedTensor; delta: Delta }[];
}

/**
 * @returns one for each layer of the model that the file changes, how many tensors are for others, and sentences about
 * what it leaves out
 */
function sitesOf(
  adapter: Adapter,
  model: PartTensors,
  hint: string,
): { sites: Site[]; unmatched: number; note: string[] } {
  const names = new LayerNames(model);
  const problemOf = (name: string): WeightsError => names.problemOf(name, adapter.layers.get(name)!.key, hint);
  const told = names.ofOtherFamily(adapter.layers.keys());
  if (told) throw problemOf(told.name);
  const sites = new Map<string, Site>();
  const left = { unknown: new Set<AdapterLayer>(), again: new Set<AdapterLayer>() };
  const found = [...adapter.layers].map(([name, layer]) => ({ name, layer, targets: names.find(name) }));
  // What some files say under the model's own names and once more under those of the original counts once.
  found.sort((one, other) => Number(!!one.targets[0]?.rows) - Number(!!other.targets[0]?.rows));
  for (const { name, layer, targets } of found) {
    if (targets.length === 0 && names.isCutOff(name)) continue;
    if (targets.length === 0 && !model.has('transformer')) throw problemOf(name);
    if (targets.length === 0) left.unknown.add(layer);
    for (const target of targets) {
      const site = siteOf(layer, target, model);
      if (!site) throw problemOf(name);
      const id = `${site.part}.${site.path}`;
      const before = sites.get(id);
      if (before && target.rows && !before.rows) left.again.add(layer);
      else if (before)
        throw malformed(`The keys ${quote(before.layer.key)} and ${quote(layer.key)} are for the same layer.`);
      else sites.set(id, site);
    }
  }
  const [first] = adapter.layers.keys();
  if (first !== undefined && sites.size === 0) throw problemOf(first);
  const note = [
    ...leftOut(adapter, left.unknown, 'the base model does not have'),
    ...leftOut(adapter, left.again, 'the file has under another name too'),
  ];
  return { sites: [...sites.values()], unmatched: countTensors(left.unknown), note };
}

const countTensors = (layers: Iterable<AdapterLayer>): number =>
  [...layers].reduce((sum, { factors, alpha }) => sum + factors.size + (alpha === undefined ? 0 : 1), 0);

function leftOut({ layers }: Adapter, left: ReadonlySet<AdapterLayer>, why: string): string[] {
  const [first] = left;
  if (!first) return [];
  return [
    `Of ${countTensors(layers.values())} tensors ${countTensors(left)} are left out: they are for layers that ${why}, such as that of ${quote(first.key)}.`,
  ];
}

function entriesOf<T>(parts: Map<PartName, Map<string, T>>, part: PartName): Map<string, T> {
  const entries = parts.get(part) ?? new Map<string, T>();
  parts.set(part, entries);
  return entries;
}

/** Of the places of a target the first that has tensors for all changes, in their shapes if there is one. */
function siteOf(layer: AdapterLayer, { places, rows }: Target, model: PartTensors): Site | undefined {
  const deltas = deltasOf(layer, rows);
  const sites = places.flatMap((place) => {
    const changes = deltas.flatMap(([parameter, delta]) => {
      const base = model.get(place.part)?.get(`${place.path}.${parameter}`);
      return base ? [{ parameter, base, delta }] : [];
    });
    return changes.length === deltas.length ? [{ ...place, layer, rows, changes }] : [];
  });
  return sites.find(({ changes }) => changes.every(({ base, delta }) => fits(delta.shape, base.shape))) ?? sites.at(0);
}

/**
 * Whether a change fits a weight: the shapes are equal, or it is a matrix of as many columns, or one of the two has a
 * kernel of 1 x 1 where the other has none, as published LoRAs do for `proj_in` and `proj_out`.
 */
function fits(shape: readonly number[], base: readonly number[]): boolean {
  const isPointwise = (axes: readonly number[]): boolean => axes.slice(2).every((length) => length === 1);
  if (shape[0] !== base[0] || countOf(shape) !== countOf(base)) return false;
  return shape.length <= 2 || shape.join() === base.join() || (isPointwise(shape) && isPointwise(base));
}

/** @throws WeightsError for another shape, or a rank that adds nothing */
function assertFits(key: string, { shape, innerRank }: Delta, base: readonly number[], hint: string): void {
  if (!fits(shape, base))
    throw misfit(
      `The key ${quote(key)} is for a weight of shape ${shapeText(shape)}; the base model's is ${shapeText(base)}${hint}.`,
    );
  const most = Math.max(maxRank, Math.min(base[0], countOf(base.slice(1))));
  if (innerRank > most)
    throw tooComplex(`The layer of ${quote(key)} has the rank ${innerRank}; its weight takes at most ${most}.`);
}

const [sd1, sd2, xl] = ['1.x', '2.x', 'XL'].map((version) => `Stable Diffusion ${version}`);

/** Widths of what layers take, and which models have them. */
const modelWidths: readonly [RegExp, Readonly<Record<number, string>>][] = [
  [/attn2_to_[kv]$/, { 768: sd1, 1024: sd2, 2048: xl }],
  [/self_attn_[qkv]_proj$/, { 768: sd1, 1024: sd2, 1280: xl }],
  [
    /(?:_attn_(?:qkv|to_[qkv]|to_qkv_mlp_proj)|single_blocks_\d+_linear1)$/,
    { 3072: 'FLUX.2 [klein] 4B', 4096: 'FLUX.2 [klein] 9B', 6144: 'FLUX.2 [dev]' },
  ],
  [/_attention_(?:qkv|to_[qkv])$/, { 2304: 'Lumina-Image 2.0', 3840: 'Z-Image' }],
];

/** The end of a sentence about a layer that does not fit: for which other models the file probably is. */
function hintOf({ layers }: Adapter, model: PartTensors): string {
  const ofDenoiser = [...(model.get('unet') ?? model.get('transformer') ?? [])];
  const own = ofDenoiser.find(([name]) => /(?:attn2\.to_k|attn\.to_q|attention\.to_q)\.weight$/.test(name))?.[1]
    .shape[1];
  for (const [pattern, models] of modelWidths)
    for (const [name, { factors }] of layers) {
      const width = (factors.get('down') ?? factors.get('hada_w1_b'))?.shape[1] ?? 0;
      if (pattern.test(name) && models[width] && width !== own) return `: the file is probably for ${models[width]}`;
    }
  return '';
}

/** By how much a change is multiplied; undefined if nothing says it where it matters. */
function scaleOf({ alpha }: AdapterLayer, { rank }: Delta, told?: Scaling): number | undefined {
  if (rank === undefined) return 1;
  if (alpha !== undefined) return rank === 'told' ? 1 : alpha / rank;
  const divisor = rank === 'told' ? told?.rank : rank;
  if (divisor === undefined) return 1;
  return told && told.alpha / (told.isRankStabilised ? Math.sqrt(divisor) : divisor);
}

function lowRankLayer({ up, down, rank }: Pair, shape: readonly number[], scale: number): LowRankLayer {
  const read = async (): ReturnType<LowRankLayer['read']> => {
    const [a, b] = [await down.read(), await up.read()];
    return { a, b: b.map((value) => value * scale) };
  };
  return { rank, aShape: [rank, ...shape.slice(1)], read };
}
