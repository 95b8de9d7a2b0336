import { InferenceSession, Tensor } from 'onnxruntime-node';
import { spinning } from '../model/spinning';
import { gemmModel } from '../onnx/small-graph';

/** Threads sleep between two sums instead of spinning, because reading and writing weights takes most of the time. */
const waiting = spinning(0);

/**
 * Adds low-rank products to weights on all cores: a rank 128 LoRA for SD 1.5 takes about 70 billion multiplications.
 */
export class LowRankSum {
  private constructor(private readonly session: InferenceSession) {}

  static async create(): Promise<LowRankSum> {
    return new LowRankSum(await InferenceSession.create(gemmModel(), waiting));
  }

  /** weight [rows, columns] + left [rows, rank] x right [rank, columns], all row-major. */
  async add(weight: Float32Array, left: Float32Array, right: Float32Array, rank: number): Promise<Float32Array> {
    const [rows, columns] = [left.length / rank, right.length / rank];
    const { sum } = await this.session.run({
      left: new Tensor('float32', left, [rows, rank]),
      right: new Tensor('float32', right, [rank, columns]),
      weight: new Tensor('float32', weight, [rows, columns]),
    });
    return sum.data as Float32Array;
  }

  async release(): Promise<void> {
    await this.session.release();
  }
}
