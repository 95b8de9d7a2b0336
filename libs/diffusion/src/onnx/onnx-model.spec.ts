import { mutations } from '../../../../test/support/mutations';
import { encodeOnnx, type InitializerToWrite } from '../../../../test/support/onnx';
import { BufferSource } from '../tensor/byte-source';
import { OnnxModelError, parseOnnx, traceWeights } from './onnx-model';
import { bytesField, varintField } from './protobuf';

const [FLOAT, FLOAT16] = [1, 10];
const relu = { op: 'Relu', inputs: ['x'], outputs: ['y'] };
const open = (bytes: Buffer) => parseOnnx(new BufferSource(bytes), 'model.onnx');
const withInitializer = (initializer: Partial<InitializerToWrite>) =>
  encodeOnnx({ nodes: [relu], initializers: [{ name: 'w', dims: [2], dataType: FLOAT, ...initializer }] });

describe(parseOnnx, () => {
  it('reads nodes, attributes, inputs and where weights are', () => {
    const raw = new Uint8Array(8).fill(7);
    const bytes = encodeOnnx({
      nodes: [relu, { op: 'Transpose', name: '/a/T', inputs: ['w'], outputs: ['t'], ints: { perm: [1, 0] } }],
      initializers: [
        { name: 'w', dims: [2, 1], dataType: FLOAT, raw },
        { name: 'p', dims: [3], dataType: FLOAT, packedFloats: Float32Array.of(1, 2, 3) },
        { name: 'e', dims: [4], dataType: FLOAT16, external: { location: 'weights.pb', offset: '64', length: '8' } },
        { name: 'f', dims: [4], dataType: FLOAT16, external: { location: 'weights.pb' } },
      ],
      inputs: ['x'],
    });
    const model = open(bytes);
    expect(model.nodes[1]).toMatchObject({ name: '/a/T', opType: 'Transpose', inputs: ['w'], outputs: ['t'] });
    expect(model.nodes[1].ints.get('perm')).toEqual([1, 0]);
    const { w, p, e, f } = Object.fromEntries(model.initializers);
    expect(bytes.subarray(w.data!.begin, w.data!.end)).toEqual(Buffer.from(raw));
    expect(bytes.readFloatLE(p.data!.begin + 8)).toBe(3);
    expect(e).toMatchObject({ dims: [4], dataType: FLOAT16, data: { location: 'weights.pb', begin: 64, end: 72 } });
    expect(f.data).toEqual({ location: 'weights.pb', begin: 0, end: undefined });
  });

  it.each<[string, Buffer, RegExp]>([
    ['no bytes', Buffer.alloc(0), /it has no graph/],
    ['text', Buffer.from('version https://git-lfs'), /not an ONNX model/],
    ['a graph without nodes', encodeOnnx({ nodes: [] }), /no nodes/],
    ['two graphs', Buffer.concat([encodeOnnx({ nodes: [relu] }), encodeOnnx({ nodes: [relu] })]), /two graphs/],
    ['a graph that is a number', varintField(7, 1), /is not a message/],
    ['an endless number', Buffer.alloc(20, 0xff), /longer than ten bytes/],
    ['a length past the end', Buffer.from([0x3a, 0x20, 0x0a]), /cut short/],
    ['a wrong wire type', Buffer.from([0x3f, 0x01]), /no valid field/],
    ['too few bytes for a shape', withInitializer({ raw: new Uint8Array(4) }), /4 bytes where its shape needs 8/],
    [
      'a shape that overflows',
      withInitializer({ dims: [2 ** 50, 2 ** 50], raw: new Uint8Array(4) }),
      /impossible shape/,
    ],
    ['data outside the folder', withInitializer({ external: { location: '../weights.pb' } }), /not beside the model/],
    ['data at an absolute path', withInitializer({ external: { location: '/etc/passwd' } }), /not beside the model/],
    ['data without a location', withInitializer({ external: { offset: '0' } }), /not beside the model/],
    ['an offset that is no number', withInitializer({ external: { location: 'w', offset: '1e9' } }), /not a number/],
    [
      'an initializer twice',
      encodeOnnx({ nodes: [relu], initializers: [0, 1].map(() => ({ name: 'w', dims: [0], dataType: FLOAT })) }),
      /"w" twice/,
    ],
    ['a name that is a number', bytesField(7, bytesField(1, varintField(3, 5))), /is not a message/],
  ])('refuses %s', (_, bytes, sentence) => {
    expect(() => open(bytes)).toThrow(OnnxModelError);
    expect(() => open(bytes)).toThrow(sentence);
  });

  it('rejects any damaged file with a plain error', () => {
    const good = encodeOnnx({
      nodes: [
        { op: 'Cast', inputs: ['a.weight_f16'], outputs: ['a.weight'], ints: { to: [FLOAT] } },
        { op: 'Transpose', inputs: ['a.weight'], outputs: ['t'], ints: { perm: [1, 0] } },
        { op: 'MatMul', name: '/a/MatMul', inputs: ['x', 't'], outputs: ['y'] },
        { op: 'Gather', name: '/g/Gather', inputs: ['b'], outputs: ['z'] },
      ],
      initializers: [
        { name: 'a.weight_f16', dims: [2, 3], dataType: FLOAT16, raw: new Uint8Array(12) },
        { name: 'b', dims: [2, 2], dataType: FLOAT, external: { location: 'weights.pb', offset: '4', length: '16' } },
      ],
      inputs: ['x'],
      valueInfos: ['t'],
    });
    const outcomes = { refused: 0, read: 0 };
    for (const bytes of mutations(good, 5000)) {
      try {
        const model = open(bytes);
        const trace = traceWeights(model);
        for (const { inputs } of model.nodes) inputs.forEach(trace);
        outcomes.read++;
      } catch (error) {
        expect(error).toBeInstanceOf(OnnxModelError);
        expect((error as Error).message).toMatch(/^model\.onnx is not an ONNX model: .*\.$/s);
        outcomes.refused++;
      }
    }
    expect(outcomes.refused).toBeGreaterThan(1000);
    expect(outcomes.read).toBeGreaterThan(500);
  });
});
