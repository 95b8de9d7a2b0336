import { readFile } from 'node:fs/promises';
import { encodeFloat16 } from '../../../../libs/diffusion/src/tensor/half';
import { judge, plainText } from './first-key';
import { neighbourRow } from './neighbour-row';

/** A layer of the bundled model, [64, 64, 3, 3]. */
const layer = 'lora_unet_down_blocks_0_resnets_0_conv1';
const rank = 300;
/** How much longer the other key's own small file may take than beside harmless uploads. */
const uploadLimitMs = { long: 3_000, short: 20_000 };

/** LoRA files that are cheap to send and expensive to check. */
export const weights = neighbourRow({
  name: 'weights',
  title: 'a LoRA of 17 MB that takes a minute to multiply',
  async prepare({ site, size, first, second }) {
    const small = await readFile('test/golden/models/lora/zwx-robot-kohya.safetensors');
    const newFinetune = async (caller: typeof second): Promise<string> => {
      const { text } = await caller.request('POST', '/v1/finetunes', { name: 'robot', model: site.trainableModel });
      return (JSON.parse(text) as { id: string }).id;
    };
    const [theirs, ours] = [await newFinetune(first.caller), await newFinetune(second)];
    const put = async (path: string, body: Buffer): Promise<string | undefined> => {
      const answer = await first.send({ method: 'PUT', path, body });
      // A key with too many uploads in progress may have to wait.
      if (answer.status === 429) return undefined;
      const isRefused = answer.status >= 400;
      return judge(answer) ?? (isRefused ? undefined : `a file that fits no layer is answered ${answer.status}`);
    };
    // The second key's own small file is on its way all the while, too.
    const durations = new Map<string, number[]>();
    const beside = (name: string, body: () => Buffer) => ({
      name,
      atOnce: 3,
      everyMs: 2_000,
      send: async (turn: number): Promise<string | undefined> => {
        if (turn % 3 > 0) return put(`/v1/finetunes/${theirs}/weights`, body());
        const startedAt = performance.now();
        const status = await upload(`${first.url}/v1/finetunes/${ours}/weights`, second.token, small);
        site.ledger.answered(status);
        const elapsedMs = Math.round(performance.now() - startedAt);
        durations.set(name, [...(durations.get(name) ?? []), elapsedMs]);
        return status === 200 ? undefined : `the other key's file is answered ${status || 'not at all'}`;
      },
    });
    const [hostile, harmless] = [
      hostileFiles(),
      loraFile({ lora_down: [rank, 29_400, 1, 1], lora_up: [64, rank, 1, 1] }),
    ];
    const notes: Record<string, number> = {};
    let turn = 0;
    return {
      harmless: beside('uploads that fit no layer', () => harmless),
      hostile: [beside('uploads that are dear to check', () => hostile[turn++ % hostile.length])],
      check: async () => {
        const [calm, attacked] = [...durations.values()].map((each) => Math.max(...each));
        Object.assign(notes, { 'upload harmless worst ms': calm, 'upload hostile worst ms': attacked });
        return attacked > calm + uploadLimitMs[size]
          ? [`the other key's small file takes ${attacked} ms, beside harmless uploads ${calm} ms`]
          : [];
      },
      notes,
    };
  },
});

/** @returns the answer's status; 0 for none. */
async function upload(url: string, token: string, body: Buffer): Promise<number> {
  const headers = { authorization: `Bearer ${token}` };
  const signal = AbortSignal.timeout(uploadLimitMs.short * 2);
  const reply = await fetch(url, { method: 'PUT', headers, body: new Uint8Array(body), signal }).catch(() => undefined);
  await reply?.text();
  return reply?.status ?? 0;
}

/** Files that take a minute to multiply. */
function hostileFiles(): Buffer[] {
  return [
    loraFile({ lora_down: [rank, 14_700, 1, 1], lora_up: [64, rank, 1, 1], lora_mid: [rank, rank, 7, 7] }),
    // The shape of the layer, by way of more numbers than it can have.
    loraFile({ lora_down: [6_000, 64, 1, 1], lora_up: [64, 6_000, 1, 1], lora_mid: [6_000, 6_000, 3, 3] }, 17_000_000),
  ];
}

/** A LoRA of one layer in float16; only the first `bytes` of its numbers, if given. */
function loraFile(shapes: Record<string, number[]>, bytes = Infinity): Buffer {
  const header: Record<string, object> = { __metadata__: { comment: plainText(20) } };
  let end = 0;
  for (const [role, shape] of Object.entries(shapes)) {
    const start = end;
    end += 2 * shape.reduce((product, length) => product * length, 1);
    header[`${layer}.${role}.weight`] = { dtype: 'F16', shape, data_offsets: [start, end] };
  }
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  const one = encodeFloat16(Float32Array.of(0.01));
  const numbers = Buffer.alloc(Math.min(end, bytes)).fill(new Uint8Array(one.buffer, one.byteOffset, one.byteLength));
  return Buffer.concat([length, text, numbers]);
}
