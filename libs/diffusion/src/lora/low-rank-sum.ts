import { InferenceSession, Tensor } from 'onnxruntime-node';
import { bytesField, varintField } from '../onnx/protobuf';

/** Threads sleep between two sums: reading and writing weights takes most of the time, and they would spin meanwhile. */
const waiting: InferenceSession.SessionOptions = { extra: { session: { intra_op: { allow_spinning: '0' } } } };

/** Adds low-rank products to weights on all cores: the products of a rank 128 LoRA for SD 1.5 are some 70 billion multiplications. */
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

/** An ONNX model of one Gemm node: sum = left x right + weight. Field numbers as in onnx.proto. */
function gemmModel(): Buffer {
  const inputs = ['left', 'right', 'weight'];
  const node = [...inputs.map((name) => bytesField(1, name)), bytesField(2, 'sum'), bytesField(4, 'Gemm')];
  const dim = bytesField(1, Buffer.alloc(0));
  const shape = bytesField(2, Buffer.concat([dim, dim]));
  const type = bytesField(2, bytesField(1, Buffer.concat([varintField(1, 1), shape])));
  const value = (name: string) => Buffer.concat([bytesField(1, name), type]);
  const graph = [
    bytesField(1, Buffer.concat(node)),
    bytesField(2, 'low-rank-sum'),
    ...inputs.map((name) => bytesField(11, value(name))),
    bytesField(12, value('sum')),
  ];
  const [irVersion, opset] = [varintField(1, 8), bytesField(8, varintField(2, 13))];
  return Buffer.concat([irVersion, opset, bytesField(7, Buffer.concat(graph))]);
}
