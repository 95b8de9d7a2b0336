import { type ModelFolder, scaleOf } from '../families/model-folder';
import { schedulerNameOf } from '../schedulers';
import { type PredictionType, readSchedulerConfig } from '../schedulers/scheduler-config';
import type { NamedTensors } from '../weights/named-tensor';

/** Facts about a model, from its own files; nothing here is known in advance. */
export interface ModelFacts {
  latentChannels: number;
  /** Pixels of the picture's edge for one of the latents' edge. */
  vaeScaleFactor: number;
  predictionType: PredictionType;
  /** The model's own scheduler: the name that a request would choose it by, diffusers' class name where none fits. */
  scheduler: string;
  /** Edge in pixels of the square pictures that the model was trained on. */
  nativeSize: number;
  /** Width of an embedding. */
  hiddenWidth: number;
  /** Tokens of one encoded row, begin and end included; longer prompts take several rows. */
  maxTokens: number;
  /** Sizes on which the memory of a call depends. */
  widths: ModelWidths;
}

/** Sizes on which the memory of a call depends, beside that of the picture. */
export interface ModelWidths {
  /** Pixels of the picture's edge for one of the latents' edge. */
  scale: number;
  /** Channels of the U-Net's largest level. */
  channels: number;
  /** Most channels that the VAE decoder has at the size of the picture. */
  decoderChannels: number;
  /** Of the text encoders together: width of a token, inside a layer and between two, and tokens of a row. */
  textEncoder: { hidden: number; inner: number; tokens: number };
}

/** The facts of a model. @param sizes what its graphs take and give */
export function factsOf(
  folder: ModelFolder,
  sizes: Pick<ModelFacts, 'latentChannels' | 'vaeScaleFactor' | 'hiddenWidth'>,
): ModelFacts {
  const { schedulerJson, textEncoders, nativeSize } = folder;
  return {
    ...sizes,
    predictionType: readSchedulerConfig(schedulerJson, {}).predictionType,
    scheduler: schedulerNameOf(schedulerJson) ?? String(schedulerJson._class_name),
    nativeSize,
    maxTokens: textEncoders[0].tokens.maxLength,
    widths: modelWidths(folder),
  };
}

/** Read from the weights' shapes, so that it is known before a model is loaded. */
export function modelWidths({ tensors, textEncoders }: Pick<ModelFolder, 'tensors' | 'textEncoders'>): ModelWidths {
  const [unet, vae] = [tensors.get('unet')!, tensors.get('vae')!];
  const lengths = textEncoders.map(({ part }) => {
    const own = tensors.get(part)!;
    const hidden = lengthOf(own, 'text_model.embeddings.token_embedding.weight', 1) ?? 768;
    return { hidden, inner: lengthOf(own, 'text_model.encoder.layers.0.mlp.fc1.weight', 0) ?? 4 * hidden };
  });
  return {
    scale: scaleOf(vae),
    channels: lengthOf(unet, 'conv_in.weight', 0) ?? 320,
    // The level below is enlarged before its channels become fewer.
    decoderChannels: Math.max(
      lengthOf(vae, 'decoder.conv_out.weight', 1) ?? 128,
      lengthOf(vae, 'decoder.up_blocks.3.resnets.0.conv1.weight', 1) ?? 0,
    ),
    textEncoder: {
      hidden: lengths.reduce((sum, { hidden }) => sum + hidden, 0),
      inner: lengths.reduce((sum, { inner }) => sum + inner, 0),
      tokens: textEncoders[0].tokens.maxLength,
    },
  };
}

const lengthOf = (tensors: NamedTensors, name: string, axis: number): number | undefined =>
  tensors.get(name)?.shape[axis];
