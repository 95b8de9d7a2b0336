import { countOf } from '../weights/named-tensor';
import type { Attribute, Initializer, Value } from './graph';

/** The domain of ONNX Runtime's own operators. */
export const microsoft = 'com.microsoft';

/** What writes a graph: each method adds nodes or constants, and gives the name of a value. */
export abstract class GraphBuilder {
  /** Adds a node with one output. */
  abstract op(opType: string, inputs: readonly Value[], attributes?: Record<string, Attribute>, domain?: string): Value;

  /** A constant in the type that is computed in. */
  abstract floats(name: string, values: ArrayLike<number>, shape?: readonly number[]): Value;

  /** Adds a constant. One of the same name is replaced, so equal names have to mean equal values. */
  protected abstract constant(name: Value, initializer: Exclude<Initializer, { file: string }>): Value;

  add(x: Value, y: Value): Value {
    return this.op('Add', [x, y]);
  }

  mul(x: Value, y: Value): Value {
    return this.op('Mul', [x, y]);
  }

  concat(values: readonly Value[], axis: number): Value {
    return this.op('Concat', values, { axis });
  }

  transpose(x: Value, ...perm: number[]): Value {
    return this.op('Transpose', [x], { perm });
  }

  /** 0 keeps a length, -1 is what remains. */
  reshape(x: Value, ...shape: number[]): Value {
    return this.op('Reshape', [x, this.integers(shape)]);
  }

  integers(values: readonly number[]): Value {
    const bytes = Buffer.from(BigInt64Array.from(values, BigInt).buffer);
    return this.constant(`integers(${values.join()})`, { type: 'int64', shape: [values.length], bytes });
  }

  /** A constant of equal bytes. */
  bytes(type: 'uint8' | 'int8', value: number, shape: readonly number[], name = `${type}(${value}, ${shape.join()})`) {
    return this.constant(name, { type, shape, bytes: Buffer.alloc(countOf(shape), value) });
  }

  number(value: number): Value {
    return this.floats(`number(${value})`, [value], []);
  }

  /** A constant in float32. */
  exactly(name: string, values: ArrayLike<number>, shape: readonly number[] = [values.length]): Value {
    return this.constant(name, { type: 'float32', shape, bytes: Buffer.from(Float32Array.from(values).buffer) });
  }
}
