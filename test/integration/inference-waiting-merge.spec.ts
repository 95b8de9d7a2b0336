import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Admission } from '../../apps/inference/src/engine/admission';
import type { DrawCommand } from '../../apps/inference/src/engine/drawing-in-progress';
import type { DrawnModel } from '../../apps/inference/src/engine/engine-protocol';
import { EngineShares } from '../../apps/inference/src/engine/engine-shares';
import { ModelRegistry } from '../../apps/inference/src/engine/model-registry';
import { wallClock } from '../../apps/inference/src/engine/work-clock';

const root = join(__dirname, '..', '..');
const request: DrawCommand['request'] = {
  prompt: 'zwx robot',
  negativePrompt: null,
  guidanceScale: 1,
  numInferenceSteps: 1,
  seed: 1,
  numImages: 1,
  scheduler: null,
  width: 256,
  height: 256,
  promptWeighting: false,
};

describe(Admission.name, () => {
  it('lets a command go that is canceled while it waits for the merge of another', async () => {
    const cacheDir = mkdtempSync(join(tmpdir(), 'darkroom-merges-'));
    const commands = [1, 2].map((id) => commandOf(id));
    const failed: number[] = [];
    let begun = 0;
    const host = {
      isIdle: () => true,
      isAlone: () => false,
      begun: () => void begun++,
      failed: ({ id }: DrawCommand) => void failed.push(id),
      // It asks at each layer, of which there are a hundred: a merge of seconds.
      isMerging: () => {
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50);
        cancel(commands[1]);
      },
      ...{ shares: new EngineShares(), rowMs: () => 0 },
      encode: wallClock.during,
    };
    const nothing = () => undefined;
    const registry = new ModelRegistry(Infinity, () => new Set(), nothing, nothing);
    const admission = new Admission({ device: 'cpu', intraOpNumThreads: 1, cacheDir }, registry, host);
    for (const command of commands) admission.add(command);
    await admission.admit();
    await admission.settled();
    admission.endAborted();
    await admission.admit();
    expect([failed, begun]).toEqual([[2], 0]);
    cancel(commands[0]);
    await admission.settled();
    admission.endAborted();
    expect(failed).toEqual([2, 1]);
    await registry.clear();
    rmSync(cacheDir, { recursive: true });
  });
});

function commandOf(id: number): DrawCommand {
  const model: DrawnModel = {
    key: `robot ${id}`,
    name: 'shapes',
    folder: join(root, 'models', 'shapes'),
    hash: 'a'.repeat(64),
    weights: {
      kind: 'lora',
      file: join(root, 'test/golden/models/lora/zwx-robot-diffusers.safetensors'),
      hash: 'b'.repeat(64),
      scale: 1 / id,
      token: 'zwx',
    },
  };
  return { type: 'draw', id, owner: 'somebody', model, request, cancel: new SharedArrayBuffer(4) };
}

function cancel(command: DrawCommand): void {
  Atomics.store(new Int32Array(command.cancel), 0, 1);
}
