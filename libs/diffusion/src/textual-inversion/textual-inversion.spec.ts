import { encodeOnnx } from '../../../../test/support/onnx';
import { OnnxModel } from '../onnx/onnx-model';
import { FLOAT } from '../onnx/onnx-proto';
import { findTable } from './textual-inversion';

const table = (name: string, rows: number, width: number) => ({
  name,
  dims: [rows, width],
  dataType: FLOAT,
  raw: new Uint8Array(rows * width * 4),
});

describe(findTable.name, () => {
  it('chooses the table with the most rows', () => {
    const look = (name: string) => ({ op: 'Gather', inputs: [name, 'ids'], outputs: [`${name}_rows`] });
    const bytes = encodeOnnx({
      nodes: [look('positions'), look('tokens')],
      initializers: [table('positions', 7, 4), table('tokens', 50, 4)],
    });
    expect(findTable(OnnxModel.from(bytes, 'model.onnx'))!.initializer.name).toBe('tokens');
  });
});
