import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { encodeOnnx, type InitializerToWrite } from '../../../../test/support/onnx';
import { readValues, rowsOf, WeightsFileError } from './named-tensor';
import { readOnnx } from './onnx-file';
import { diffusersUnetPath, partsOfCheckpoint, withDiffusersNames } from './original-names';
import { readPart, readSafetensors } from './safetensors-file';

const folder = mkdtempSync(join(tmpdir(), 'weights-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Writes float32 tensors, whose values count up through the file. */
function write(name: string, shapes: Record<string, number[]>): string {
  let at = 0;
  const header = Object.entries(shapes).map(([name, shape]) => {
    const begin = at;
    at += 4 * shape.reduce((product, length) => product * length, 1);
    return [name, { dtype: 'F32', shape, data_offsets: [begin, at] }] as const;
  });
  const text = Buffer.from(JSON.stringify(Object.fromEntries(header)));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  writeFileSync(
    join(folder, name),
    Buffer.concat([length, text, Buffer.from(Float32Array.from({ length: at / 4 }, (_, i) => i).buffer)]),
  );
  return join(folder, name);
}

describe('Named tensors', () => {
  it('are rows of another tensor without being copied', async () => {
    const tensors = await readSafetensors(write('rows.safetensors', { first: [1], fused: [6, 2] }));
    const rows = rowsOf(tensors.get('fused')!, 2, 4);
    expect(rows.shape).toEqual([2, 2]);
    expect([...(await readValues(rows))]).toEqual([5, 6, 7, 8]);
  });

  it('of OpenCLIP are the three projections of its fused weight', async () => {
    const shapes = {
      positional_embedding: [1, 2],
      'transformer.resblocks.0.attn.in_proj_weight': [6, 2],
      text_projection: [2, 3],
    };
    const tensors = withDiffusersNames('text_encoder_2', await readSafetensors(write('clip.safetensors', shapes)));
    const key = tensors.get('text_model.encoder.layers.0.self_attn.k_proj.weight')!;
    expect([...(await readValues(key))]).toEqual([6, 7, 8, 9]);
    expect(tensors.get('text_projection.weight')).toMatchObject({ shape: [3, 2], isTransposed: true });
  });

  it('of a checkpoint are those of its parts', async () => {
    const shapes = {
      'model.diffusion_model.input_blocks.0.0.weight': [1],
      'first_stage_model.decoder.up.1.block.0.conv1.weight': [1],
      'first_stage_model.decoder.mid.attn_1.q.weight': [2, 2, 1, 1],
      'cond_stage_model.transformer.embeddings.position_embedding.weight': [1],
      'model_ema.decay': [1],
    };
    const parts = partsOfCheckpoint(await readSafetensors(write('all.safetensors', shapes)));
    expect(Object.fromEntries([...parts].map(([part, tensors]) => [part, [...tensors.keys()]]))).toEqual({
      unet: ['conv_in.weight'],
      vae: ['decoder.up_blocks.0.resnets.0.conv1.weight', 'decoder.mid_block.attentions.0.to_q.weight'],
      text_encoder: ['text_model.embeddings.position_embedding.weight'],
    });
    expect(parts.get('vae')!.get('decoder.mid_block.attentions.0.to_q.weight')!.shape).toEqual([2, 2]);
  });

  it.each([
    ['input_blocks.1.0.in_layers.2', 'down_blocks.0.resnets.0.conv1'],
    ['input_blocks_4_1_proj_in', 'down_blocks.1.attentions.0.proj_in'],
    ['input_blocks_3_0_op', 'down_blocks.0.downsamplers.0.conv'],
    ['output_blocks.5.2.conv', 'up_blocks.1.upsamplers.0.conv'],
    ['middle_block.2.emb_layers.1', 'mid_block.resnets.1.time_emb_proj'],
    ['time_embed_2', 'time_embedding.linear_2'],
    ['down_blocks.0.resnets.0.conv1', 'down_blocks.0.resnets.0.conv1'],
  ])('of a U-Net have the path %s of LDM as %s', (path, expected) => expect(diffusersUnetPath(path)).toBe(expected));
});

describe(readOnnx.name, () => {
  const weight = { name: 'onnx::MatMul_7', dims: [2, 3], dataType: 1 };
  const open = (initializer: InitializerToWrite) => {
    const nodes = [
      { op: 'MatMul', name: '/block.0/to_q/MatMul', inputs: ['x', initializer.name], outputs: ['y'] },
      { op: 'Add', name: '/block.0/to_q/Add', inputs: ['y', 'block.0.to_q.bias'], outputs: ['z'] },
    ];
    const bias = { name: 'block.0.to_q.bias', dims: [3], dataType: 1, raw: new Uint8Array(12) };
    const path = join(folder, 'model.onnx');
    writeFileSync(path, encodeOnnx({ nodes, initializers: [initializer, bias] }));
    return readOnnx(path);
  };

  it('finds the name of a weight that an exporter has turned and renamed', async () => {
    const raw = new Uint8Array(Float32Array.of(1, 2, 3, 4, 5, 6).buffer);
    const tensors = open({ ...weight, raw });
    expect([...tensors.keys()].sort()).toEqual(['block.0.to_q.bias', 'block.0.to_q.weight']);
    const found = tensors.get('block.0.to_q.weight')!;
    expect(found).toMatchObject({ shape: [3, 2], isTransposed: true });
    expect([...(await readValues(found))]).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it('refuses a weight that goes on behind the end of its file', () => {
    writeFileSync(join(folder, 'weights.pb'), new Uint8Array(40));
    const external = { location: 'weights.pb', offset: '32', length: '24' };
    expect(() => open({ ...weight, external })).toThrow(/weights\.pb ends before the weight/);
  });
});

describe(readPart.name, () => {
  it.each([
    ['that leaves the folder', '{"weight_map": {"a": "../rows.safetensors"}}', /names "..\/rows.safetensors"/],
    ['that names a file by its path', '{"weight_map": {"a": "/etc/a.safetensors"}}', /no safetensors file beside it/],
    ['that names a file below', '{"weight_map": {"a": "b/a.safetensors"}}', /no safetensors file beside it/],
    ['of pickled weights', '{"weight_map": {"a": "model.bin"}}', /no safetensors file beside it/],
    ['without a map', '{}', /no "weight_map"/],
    ['that is no JSON', '{', /not JSON/],
  ])('refuses an index %s', async (_, text, message) => {
    writeFileSync(join(folder, 'model.safetensors.index.json'), text);
    const read = readPart(folder);
    await expect(read).rejects.toThrow(WeightsFileError);
    await expect(read).rejects.toThrow(message);
  });

  it('reads the shards that an index names, and of each what it says', async () => {
    write('model-1.safetensors', { a: [1], c: [1] });
    write('model-2.safetensors', { b: [1], c: [1] });
    const map = { a: 'model-1.safetensors', b: 'model-2.safetensors', c: 'model-2.safetensors' };
    writeFileSync(join(folder, 'model.safetensors.index.json'), JSON.stringify({ weight_map: map }));
    const tensors = await readPart(folder);
    expect([...tensors].map(([name, { file }]) => [name, file.slice(folder.length + 1)]).sort()).toEqual(
      Object.entries(map),
    );
  });
});
