import { quote } from '../safetensors/quote';
import { SafetensorsError, type SafetensorsHeader } from '../safetensors/safetensors-header';
import type { ByteSource } from '../tensor/byte-source';
import { countOf } from './named-tensor';

/** The key of a file's metadata that says in which form its layers are, as ComfyUI writes it. */
const metadataKey = '_quantization_metadata';

const besideLayer = '.comfy_quant';

/** The form of a layer: whole numbers with a scale for each output, or for each layer. */
const format = 'int8_tensorwise';

/** How the numbers of a layer are stored. */
export interface LayerForm {
  format?: string;
  /** Whether the inputs of its weight are rotated, and in blocks of how many. */
  convrot?: boolean;
  convrot_groupsize?: number;
}

/** The metadata of a file with layers in int8, each with the width of its rotation. */
export function int8Metadata(rotations: ReadonlyMap<string, number>): Record<string, string> {
  const formOf = (block: number): LayerForm => ({ format, convrot: block > 1, convrot_groupsize: block });
  const layers = Object.fromEntries([...rotations].map(([layer, block]) => [layer, formOf(block)]));
  return { [metadataKey]: JSON.stringify({ format_version: '1.0', layers }) };
}

/** Forms of layers whose numbers are read: those of float8 are scaled, or not. */
const knownFormats = [format, 'float8_e4m3fn', 'float8_e5m2'];

/** Whether the numbers of layers in a form are read; `undefined` where a file does not say. */
export const isKnownForm = (name: string | undefined): boolean => name === undefined || knownFormats.includes(name);

/**
 * What a file says of the form of its layers, by their paths: in the metadata, or beside each as the text
 * `<layer>.comfy_quant`.
 * @throws SafetensorsError if that is malformed
 */
export function formsOf({ tensors, metadata }: SafetensorsHeader, source: ByteSource): Map<string, LayerForm> {
  const { layers = {} } = parse<{ layers?: Record<string, LayerForm> }>(metadata.get(metadataKey) ?? '{}');
  const found = new Map(Object.entries(layers ?? {}));
  for (const [name, { begin, end }] of tensors)
    if (name.endsWith(besideLayer))
      found.set(name.slice(0, -besideLayer.length), parse(source.text(begin, Math.min(end, begin + 1000))));
  return found;
}

/**
 * The weights of linear layers that a file has in int8 with a scale for each output, each with the width of its
 * rotation.
 * @throws SafetensorsError for a form that is not known
 */
export function rotationsOf(header: SafetensorsHeader, source: ByteSource): Map<string, number> {
  const { tensors } = header;
  const found = new Map<string, number>();
  const forms = formsOf(header, source);
  for (const [name, { dtype, shape }] of tensors) {
    const scale = tensors.get(`${name}_scale`);
    if (dtype !== 'I8' || shape.length !== 2 || scale?.dtype !== 'F32' || countOf(scale.shape) !== shape[0]) continue;
    const form = forms.get(name.replace(/\.weight$/, ''));
    const { format: own = format, convrot, convrot_groupsize: width = 256 } = form ?? {};
    // Nothing but the form tells a rotated weight from another, and each read as the other makes another model.
    if (form?.format === undefined && convrot === undefined)
      throw new SafetensorsError(`The weight ${quote(name)} is in int8, and nothing in the file tells in which form.`);
    const rotation = convrot ? width : 1;
    const isKnown = own === format && typeof (convrot ?? false) === 'boolean' && [1, 4, 16, 64, 256].includes(rotation);
    if (!isKnown || shape[1] % rotation !== 0)
      throw new SafetensorsError(`The weight ${quote(name)} is in int8 in a form that is not known.`);
    found.set(name, rotation);
  }
  return found;
}

function parse<T>(text: string): T {
  try {
    return (JSON.parse(text) ?? {}) as T;
  } catch {
    throw new SafetensorsError('What the file says of the form of its layers is not valid JSON.');
  }
}
