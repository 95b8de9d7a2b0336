/**
 * Names of layers in the transformers of Black Forest Labs (FLUX.2) and of Tongyi (Z-Image), brought to those of
 * diffusers. Source: `loaders/single_file_utils.py` of diffusers.
 */

/** What a layer of an original file is in diffusers. */
export interface OriginalLayer {
  /** Paths of the layers that its outputs are, in equal parts from the first on. */
  paths: string[];
  /** Whether the two halves of its outputs stand the other way round in diffusers. */
  isSwapped: boolean;
}

/** A path in which N is a number: how it is found, and how it is written with the number of another. */
interface Name {
  pattern: RegExp;
  template: string;
}

/** A path of the original, and what it is in diffusers. */
type Rule = readonly [original: Name, paths: readonly Name[], isSwapped: boolean];

/** The N of a path, which is not the one of `adaLN`. */
const number = /\bN\b/;

const nameOf = (path: string): Name => ({
  pattern: new RegExp(`^${path.replaceAll('.', '[._]').replace(number, '(\\d+)')}$`),
  template: path.replace(number, '$$1'),
});

const rule = (original: string, ...paths: string[]): Rule => [nameOf(original), paths.map(nameOf), false];

/** The same with its halves swapped. */
const swapped = (original: string, path: string): Rule => [nameOf(original), [nameOf(path)], true];

const flux2Rules: readonly Rule[] = [
  rule('img_in', 'x_embedder'),
  rule('txt_in', 'context_embedder'),
  ...['timestep', 'guidance'].flatMap((input) => {
    const embedder = `time_guidance_embed.${input}_embedder`;
    const original = `${input.replace('step', '')}_in`;
    return [
      rule(`${original}.in_layer`, `${embedder}.linear_1`),
      rule(`${original}.out_layer`, `${embedder}.linear_2`),
    ];
  }),
  ...['double_stream_modulation_img', 'double_stream_modulation_txt', 'single_stream_modulation'].map((name) =>
    rule(`${name}.lin`, `${name}.linear`),
  ),
  rule('final_layer.linear', 'proj_out'),
  // There it gives a shift and a scale, here a scale and a shift.
  swapped('final_layer.adaLN_modulation.1', 'norm_out.linear'),
  ...doubleBlock('img', ['to_q', 'to_k', 'to_v'], 'to_out.0', ['norm_q', 'norm_k'], 'ff'),
  ...doubleBlock(
    'txt',
    ['add_q_proj', 'add_k_proj', 'add_v_proj'],
    'to_add_out',
    ['norm_added_q', 'norm_added_k'],
    'ff_context',
  ),
  rule('single_blocks.N.linear1', 'single_transformer_blocks.N.attn.to_qkv_mlp_proj'),
  rule('single_blocks.N.linear2', 'single_transformer_blocks.N.attn.to_out'),
  rule('single_blocks.N.norm.query_norm', 'single_transformer_blocks.N.attn.norm_q'),
  rule('single_blocks.N.norm.key_norm', 'single_transformer_blocks.N.attn.norm_k'),
];

/** The layers of a block that has one side for the picture and one for the text. */
function doubleBlock(side: string, qkv: string[], out: string, norms: string[], ff: string): Rule[] {
  const [from, to] = [`double_blocks.N.${side}`, 'transformer_blocks.N'];
  return [
    rule(`${from}_attn.qkv`, ...qkv.map((name) => `${to}.attn.${name}`)),
    rule(`${from}_attn.proj`, `${to}.attn.${out}`),
    rule(`${from}_attn.norm.query_norm`, `${to}.attn.${norms[0]}`),
    rule(`${from}_attn.norm.key_norm`, `${to}.attn.${norms[1]}`),
    rule(`${from}_mlp.0`, `${to}.${ff}.linear_in`),
    rule(`${from}_mlp.2`, `${to}.${ff}.linear_out`),
  ];
}

const zImageRules: readonly Rule[] = [
  rule('x_embedder', 'all_x_embedder.2-1'),
  rule('final_layer.linear', 'all_final_layer.2-1.linear'),
  rule('final_layer.adaLN_modulation.1', 'all_final_layer.2-1.adaLN_modulation.1'),
  ...['layers', 'noise_refiner', 'context_refiner'].flatMap((blocks) => {
    const attention = `${blocks}.N.attention`;
    return [
      rule(`${attention}.qkv`, ...['to_q', 'to_k', 'to_v'].map((name) => `${attention}.${name}`)),
      rule(`${attention}.out`, `${attention}.to_out.0`),
      rule(`${attention}.q_norm`, `${attention}.norm_q`),
      rule(`${attention}.k_norm`, `${attention}.norm_k`),
    ];
  }),
];

const rulesOf = { flux2: flux2Rules, 'z-image': zImageRules };

/** Families whose files have names of their own. */
export type NamedFamily = keyof typeof rulesOf;

/**
 * A layer of an original file by its path, in which underscores may stand for dots; a path that is not the original's
 * is returned as it is.
 */
export function diffusersLayer(family: NamedFamily, path: string): OriginalLayer {
  for (const [{ pattern }, paths, isSwapped] of rulesOf[family])
    if (pattern.test(path)) return { paths: paths.map(({ template }) => path.replace(pattern, template)), isSwapped };
  return { paths: [path], isSwapped: false };
}

/** Where the outputs of a layer of diffusers are in an original file. */
export interface PartOfOriginal {
  /** Path of the original layer. */
  path: string;
  /** Which of so many equal parts of its outputs they are. */
  index: number;
  count: number;
}

/**
 * The inverse of `diffusersLayer`, of layers whose halves are not swapped: families have no path of diffusers in common
 * that the original of one calls otherwise. A path that the original calls the same is returned as it is.
 */
export function originalLayer(path: string): PartOfOriginal {
  for (const [{ template }, paths, isSwapped] of Object.values(rulesOf).flat()) {
    const index = isSwapped ? -1 : paths.findIndex(({ pattern }) => pattern.test(path));
    if (index >= 0) return { path: path.replace(paths[index].pattern, template), index, count: paths.length };
  }
  return { path, index: 0, count: 1 };
}
