import { graphOfPart, type PlacedGraph, readModelFolder, type UnetFiles } from '@app/diffusion';
import type { VaeFiles } from '../libs/diffusion/src/autoencoders/vae';
import { AdapterInputs, noAdapters } from '../libs/diffusion/src/adapters/row-adapters';
import { InferenceSession, Tensor } from '../libs/diffusion/src/sessions/onnx-runtime';
import { someRequest } from './bench-engine';
import { type BenchOptions, msOf } from './section';

/** Tokens of a prompt of one chunk, begin and end included. */
const tokens = 77;

/** Denoiser and VAE decoder as bare `session.run` on prepared inputs: the lower bound of any engine's time. */
export class BareGraphs {
  private readonly feeds = new Map<number, Record<string, Tensor>>();

  private constructor(
    private readonly unet: InferenceSession,
    private readonly vaeDecoder: InferenceSession,
    /** [channels, height, width] */
    private readonly shape: readonly number[],
  ) {}

  static async load({ model, threads }: BenchOptions, pixels = someRequest.width): Promise<BareGraphs> {
    const { denoiser, autoencoder } = await readModelFolder(model);
    const of = { device: 'cpu', onCuda: 'float32' } as const;
    const unet = await graphOfPart(denoiser, (denoiser as UnetFiles).build, { ...of, isAdapted: true });
    const vaeDecoder = await graphOfPart(autoencoder, (autoencoder as VaeFiles).use.decoder, {
      ...of,
      isAdapted: false,
    });
    const open = ({ bytes, folder }: PlacedGraph) =>
      InferenceSession.create(bytes, {
        executionProviders: ['cpu'],
        intraOpNumThreads: threads,
        enableMemPattern: false,
        extra: { session: { model_external_initializers_file_folder_path: folder } },
      });
    const [unetSession, vaeSession] = [await open(unet), await open(vaeDecoder)];
    const channels = Number(sizesOf(unetSession.outputMetadata[0])[1]);
    const trial = random([1, channels, 1, 1]);
    const [name] = vaeSession.inputNames;
    const [output] = Object.values(await vaeSession.run({ [name]: trial }));
    const edge = pixels / output.dims[3];
    return new BareGraphs(unetSession, vaeSession, [channels, edge, edge]);
  }

  /** Milliseconds of one call of the denoiser. */
  async unetMs(rows: number): Promise<number> {
    const feeds = this.feeds.get(rows) ?? this.unetFeeds(rows);
    this.feeds.set(rows, feeds);
    return msOf(() => this.unet.run(feeds));
  }

  /** Milliseconds of decoding one picture. */
  async decodeMs(): Promise<number> {
    const [name] = this.vaeDecoder.inputNames;
    const latents = random([1, ...this.shape]);
    return msOf(() => this.vaeDecoder.run({ [name]: latents }));
  }

  async release(): Promise<void> {
    await this.unet.release();
    await this.vaeDecoder.release();
  }

  /** Random values for a picture's inputs; nothing for Fine-Tunes and ControlNets. */
  private unetFeeds(rows: number): Record<string, Tensor> {
    const inputs = this.unet.inputMetadata.map((value) => ({
      ...value,
      shape: sizesOf(value),
      type: 'float32' as const,
    }));
    const [, , width] = inputs.find(({ name }) => name === 'encoder_hidden_states')!.shape;
    const feeds: Record<string, Tensor> = {
      ...new AdapterInputs(inputs).feeds(Array.from({ length: rows }, () => noAdapters)),
      sample: random([rows, ...this.shape]),
      timestep: new Tensor('float32', new Array<number>(rows).fill(500), [rows]),
      encoder_hidden_states: random([rows, tokens, Number(width)]),
    };
    for (const { name, shape } of inputs) {
      const [, ...ofRow] = shape.map(Number);
      // Terms of a ControlNet have no fixed shape: without one they are empty.
      feeds[name] ??= ofRow.some(Number.isNaN) ? random(shape.map(() => 0)) : random([rows, ...ofRow]);
    }
    return feeds;
  }
}

function sizesOf(value: InferenceSession.ValueMetadata): readonly (number | string)[] {
  return value.isTensor ? value.shape : [];
}

function random(sizes: readonly number[]): Tensor {
  const length = sizes.reduce((product, size) => product * size, 1);
  return new Tensor(
    'float32',
    Float32Array.from({ length }, () => Math.random() * 2 - 1),
    sizes,
  );
}
