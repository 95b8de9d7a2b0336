import { type Device, graphOfPart, type ModelFolder, type PlacedGraph } from '@app/diffusion';
import type { Denoiser } from '../../libs/diffusion/src/denoisers/denoiser';
import { Transformer, TransformerFiles } from '../../libs/diffusion/src/denoisers/transformer';
import { Unet } from '../../libs/diffusion/src/denoisers/unet';
import type { GraphSession } from '../../libs/diffusion/src/sessions/model-session';

/** The graph that a denoiser is drawn with, or that of a training, which is without inputs for adapters and ControlNets. */
export function graphOfDenoiser(
  { denoiser }: ModelFolder,
  device: Device,
  kind: 'drawn' | 'plain',
): Promise<PlacedGraph> {
  const build = kind === 'drawn' ? denoiser.graphs![0] : denoiser.training!.build;
  const onCuda = denoiser instanceof TransformerFiles ? 'bfloat16' : 'float16';
  return graphOfPart(denoiser, build, { device, onCuda, isAdapted: kind === 'drawn' });
}

/** A denoiser on a session of one of its graphs. */
export function denoiserOn({ denoiser, autoencoder }: ModelFolder, session: GraphSession, device: Device): Denoiser {
  return denoiser instanceof TransformerFiles
    ? new Transformer(session, device, denoiser.use)
    : new Unet(session, device, autoencoder.scaleFactor);
}
