import { countOf } from '../weights/named-tensor';
import { quote } from '../safetensors/quote';
import type { Adapter, AdapterLayer, FittedAdapter, LowRankLayer, MergedTensor } from './adapter';
import type { PartName, PartTensors } from '../weights/original-names';
import { type Delta, deltasOf, type Pair } from './deltas';
import { LayerNames, type Place } from './layer-names';
import { magnitudeOf, mergedTensor } from './merged-tensor';
import type { Scaling } from './scaling';
import { malformed, misfit, shapeText, tooComplex } from './weights-error';
import { fitWord } from './words';

/**
 * Largest rank of a layer's adapter inputs; a LoRA of a higher one is merged, because at rank 160 the two factors of a
 * square layer of 320 channels are as large as its weight.
 */
const maxInputRank = 128;

/**
 * Upper bound of a factor's rank, unless the shorter side of its weight is longer: a higher rank adds nothing.
 * Published LoRAs have ranks up to 1,024, whatever the layer.
 */
const maxRank = 1024;

/** Far beyond any strength that was trained with, and far below what makes float32 overflow. */
const largestScale = 1e6;

/** Most multiplications of a merge: some more than those of a DoRA of rank 128 on every layer of XL. */
const maxMultiplications = 5e11;

const assumption =
  'The file does not say by how much its layers are to be scaled, so alpha is taken to be the rank: where pictures come out too strong or too weak, set another scale.';

/**
 * Finds the weights of a model that an adapter changes, by names and shapes alone. At most one layer of the file
 * changes a weight, so that the model's size and the ranks bound all further work.
 * @throws WeightsError if the model lacks a layer or has it in another shape, or if the file is malformed
 */
export function fitAdapter(adapter: Adapter, model: PartTensors): FittedAdapter {
  const names = new LayerNames(model);
  const layers = new Map<PartName, Map<string, LowRankLayer>>();
  const merged = new Map<PartName, Map<string, MergedTensor>>();
  const owners = new Map<string, string>();
  const hint = hintOf(adapter, model);
  let multiplications = 0;
  let isAssumed = false;
  for (const [name, layer] of adapter.layers) {
    const { key } = layer;
    const deltas = deltasOf(layer);
    const places = names.find(name);
    if (places.length === 0 && names.isCutOff(name)) continue;
    const site = siteOf(places, deltas, model);
    if (!site) throw names.problemOf(name, key, hint);
    const { part, path, bases } = site;
    const owner = owners.get(`${part}.${path}`);
    if (owner !== undefined) throw malformed(`The keys ${quote(owner)} and ${quote(key)} are for the same layer.`);
    owners.set(`${part}.${path}`, key);
    for (const [i, [parameter, delta]] of deltas.entries()) {
      const base = bases[i];
      assertFits(key, delta, base.shape, hint);
      const scale = scaleOf(layer, delta, adapter.scalingOf(part, path));
      isAssumed ||= scale === undefined;
      if (!(Math.abs(scale ?? 1) <= largestScale))
        throw malformed(`The layer of ${quote(key)} has an alpha and a rank whose ratio is no usable number.`);
      const magnitude = parameter === 'weight' ? magnitudeOf(layer, base.shape) : undefined;
      // Tables of embeddings are looked up in, and take no inputs.
      if (delta.pair && delta.pair.rank <= maxInputRank && !magnitude && !path.endsWith('_embedding'))
        entriesOf(layers, part).set(path, lowRankLayer(delta.pair, base.shape, scale ?? 1));
      else {
        multiplications += delta.innerRank * countOf(base.shape);
        entriesOf(merged, part).set(`${path}.${parameter}`, mergedTensor(base, delta, scale ?? 1, magnitude));
      }
    }
  }
  const [first] = adapter.layers;
  if (first && owners.size === 0) throw names.problemOf(first[0], first[1].key, hint);
  if (multiplications > maxMultiplications)
    throw tooComplex(
      `To merge the file takes more than ${maxMultiplications} multiplications; its ranks are too high.`,
    );
  const words = adapter.words.map((word) => fitWord(word, model));
  return { kind: adapter.kind, layers, merged, words, ...(isAssumed && { note: assumption }) };
}

function entriesOf<T>(parts: Map<PartName, Map<string, T>>, part: PartName): Map<string, T> {
  const entries = parts.get(part) ?? new Map<string, T>();
  parts.set(part, entries);
  return entries;
}

/** The first of some places that has tensors for all changes, in their shapes if there is one, and these tensors. */
function siteOf(places: readonly Place[], deltas: ReturnType<typeof deltasOf>, model: PartTensors) {
  const sites = places.flatMap(({ part, path }) => {
    const bases = deltas.flatMap(([parameter]) => model.get(part)?.get(`${path}.${parameter}`) ?? []);
    return bases.length === deltas.length ? [{ part, path, bases }] : [];
  });
  return sites.find(({ bases }) => deltas.every(([, { shape }], i) => fits(shape, bases[i].shape))) ?? sites.at(0);
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

/** Widths of texts that layers of the U-Net and of text encoders are for, and which models have them. */
const familyWidths: readonly [RegExp, Readonly<Record<number, string>>][] = [
  [/attn2_to_[kv]$/, { 768: '1.x', 1024: '2.x', 2048: 'XL' }],
  [/self_attn_[qkv]_proj$/, { 768: '1.x', 1024: '2.x', 1280: 'XL' }],
];

/** The end of a sentence about a layer that does not fit: for which other models the file probably is. */
function hintOf({ layers }: Adapter, model: PartTensors): string {
  const own = [...(model.get('unet') ?? [])].find(([name]) => name.endsWith('attn2.to_k.weight'))?.[1].shape[1];
  for (const [pattern, families] of familyWidths)
    for (const [name, { factors }] of layers) {
      const width = (factors.get('down') ?? factors.get('hada_w1_b'))?.shape[1] ?? 0;
      if (pattern.test(name) && families[width] && width !== own)
        return `: the file is probably for Stable Diffusion ${families[width]}`;
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
