import { readModelFolder, spinning } from '@app/diffusion';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { someRequest } from './bench-engine';
import { type BenchOptions, msOf } from './section';

/** Tokens of a prompt of one chunk, begin and end included. */
const tokens = 77;

/** U-Net and VAE decoder of a model as bare `session.run` on prepared inputs: what nobody can be faster than. */
export class BareGraphs {
  private readonly feeds = new Map<number, Record<string, Tensor>>();

  private constructor(
    private readonly unet: InferenceSession,
    private readonly vaeDecoder: InferenceSession,
    /** [channels, height, width] */
    private readonly shape: readonly number[],
  ) {}

  /**
   * @param spinUs microseconds for which an idle thread spins; as long as ONNX Runtime likes, by default
   * @throws Error if the model's pictures are not of the usual size
   */
  static async load({ model, threads }: BenchOptions, spinUs?: number): Promise<BareGraphs> {
    const { unet, vaeDecoder } = await readModelFolder(model, 'cpu');
    const options = { executionProviders: ['cpu'], intraOpNumThreads: threads, ...spinning(spinUs) };
    const unetSession = await InferenceSession.create(unet.path, options);
    const vaeSession = await InferenceSession.create(vaeDecoder.path, options);
    const channels = Number(sizesOf(unetSession.outputMetadata[0])[1]);
    const trial = random([1, channels, 1, 1]);
    const [name] = vaeSession.inputNames;
    const [output] = Object.values(await vaeSession.run({ [name]: trial }));
    const edge = someRequest.width / output.dims[3];
    return new BareGraphs(unetSession, vaeSession, [channels, edge, edge]);
  }

  /** Milliseconds of one call of the U-Net. */
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

  private unetFeeds(rows: number): Record<string, Tensor> {
    const width = Number(sizesOf(this.unet.inputMetadata.find(({ name }) => name === 'encoder_hidden_states')!)[2]);
    return {
      sample: random([rows, ...this.shape]),
      timestep: this.timesteps(rows),
      encoder_hidden_states: random([rows, tokens, width]),
    };
  }

  /** One for each row, or one for all where the graph takes no more. */
  private timesteps(rows: number): Tensor {
    const input = this.unet.inputMetadata.find(({ name }) => name === 'timestep')!;
    const sizes = sizesOf(input).map(() => rows);
    const values = new Array<number>(sizes[0] ?? 1).fill(500);
    const isWhole = input.isTensor && input.type === 'int64';
    return isWhole ? new Tensor('int64', values.map(BigInt), sizes) : new Tensor('float32', values, sizes);
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
