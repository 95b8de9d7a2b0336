import { isGguf } from '../gguf/gguf-header';
import { quote } from '../safetensors/quote';
import { readSafetensorsHeader, type SafetensorsHeader } from '../safetensors/safetensors-header';
import { type ByteSource, withFile } from '../tensor/byte-source';
import { formsOf, isKnownForm } from './int8-form';
import { readGguf } from './gguf-file';
import { countOf, type NamedTensor, type NamedTensors, tensorTypes, UnknownFormError } from './named-tensor';
import { readSafetensors } from './safetensors-file';

/** The weights of a file in any form that can be brought to another. */
export interface WeightsFile {
  tensors: NamedTensors;
  /** What a GGUF file says of its model. */
  metadata: ReadonlyMap<string, number | string>;
}

/**
 * Reads a file of weights, which may be quantised: GGUF, or safetensors with float8 or int8. Only headers are read.
 * @throws WeightsFileError if it is malformed, UnknownFormError for numbers in another form
 */
export async function readWeightsFile(file: string): Promise<WeightsFile> {
  const tensors = await readSafetensorsOrNothing(file);
  return tensors ? { tensors: withScales(tensors), metadata: new Map() } : readGguf(file);
}

async function readSafetensorsOrNothing(file: string): Promise<NamedTensors | undefined> {
  if (await withFile(file, isGguf)) return undefined;
  const tensors = await readSafetensors(file);
  await withFile(file, (source) => refuseOtherForms(readSafetensorsHeader(source), source));
  return tensors;
}

/** Refuses layers whose numbers are not what their type says, and which are read in no form. */
function refuseOtherForms(header: SafetensorsHeader, source: ByteSource): void {
  for (const [layer, form] of formsOf(header, source))
    if (!isKnownForm(form?.format))
      throw new UnknownFormError(`The layer ${quote(layer)} is in the form ${quote(form.format)}.`);
  for (const [name, { dtype }] of header.tensors) {
    const layer = name.slice(0, name.lastIndexOf('.'));
    const isOfLayer = header.tensors.has(`${layer}.weight`);
    if (isOfLayer && !(dtype in tensorTypes) && !name.endsWith('.comfy_quant'))
      throw new UnknownFormError(`The layer ${quote(layer)} has ${quote(name)} of type ${dtype}.`);
  }
}

const ofScale = /\.(?:scale_weight|weight_scale)$/;
/** What a program multiplies the inputs of a layer with that computes in float8, and a mark of such files. */
const unused = /\.(?:scale_input|input_scale)$|(?:^|\.)scaled_fp8$/;

/** Brings the scales of float8 to their weights. @throws UnknownFormError for one that is of no such weight */
function withScales(tensors: NamedTensors): NamedTensors {
  const found = new Map<string, NamedTensor>([...tensors].filter(([name]) => !unused.test(name)));
  for (const [name, scale] of tensors) {
    if (!ofScale.test(name)) continue;
    const weight = name.replace(ofScale, '.weight');
    const tensor = tensors.get(weight);
    if (!tensor?.type.startsWith('F8') || ![1, tensor.shape[0]].includes(countOf(scale.shape)))
      throw new UnknownFormError(
        `${quote(name)} is no scale that is read: one for a weight in float8, or one for each of its rows.`,
      );
    if (found.get(weight)?.scale) throw new UnknownFormError(`${quote(weight)} has two scales.`);
    found.set(weight, { ...tensor, scale: { ...scale, shape: [countOf(scale.shape)] } });
    found.delete(name);
  }
  const strange = [...found.keys()].find((name) => ofOtherForms.test(name));
  if (strange !== undefined) throw new UnknownFormError(`${quote(strange)} is of a form that is not read.`);
  return found;
}

/** Of bitsandbytes, GPTQ and AWQ, and of the four bits of Nvidia. */
const ofOtherForms =
  /\.(?:absmax|quant_map|quant_state\..+|nested_.+|SCB|qweight|qzeros|weight_scale_2|weight_scale_inv)$/;
