import { mkdtempSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ModelStore } from '@app/model-store';
import { unpackFamily } from './families';
import { HubServer } from './hub-server';

const unpacked = mkdtempSync(join(tmpdir(), 'darkroom-hub-'));
/** The model that the hub serves: Stable Diffusion XL of a megabyte, in half precision. */
export const hubModel = join(unpacked, 'model');
/** 389,832 bytes. */
export const hubWeights = 'unet/diffusion_pytorch_model.fp16.safetensors';

/** Writes a family of test/golden/families into a folder. @returns its own folder there */
export async function familyIn(folder: string, name: string): Promise<string> {
  await unpackFamily(name, join(folder, name));
  return join(folder, name);
}

interface Site {
  folder: string;
  hub: HubServer;
  store: ModelStore;
}

/** Each test gets an empty folder, a hub with one model, and a store of both. */
export function eachWithModelStore(begin: (site: Site) => void) {
  let folder: string;
  let hub: HubServer;
  const storeWith = (options: object = {}): ModelStore =>
    new ModelStore(join(folder, 'models'), { endpoint: hub.url, token: 'hf_secret', retryDelayMs: 1, ...options });
  const inModels = (...path: string[]): string => join(folder, 'models', ...path);

  beforeAll(() => unpackFamily('sdxl', unpacked));
  afterAll(() => rm(unpacked, { recursive: true }));

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'darkroom-models-'));
    hub = await HubServer.start();
    hub.publishFolder(hubModel);
    begin({ folder, hub, store: storeWith() });
  });

  afterEach(async () => {
    await hub.close();
    await rm(folder, { recursive: true });
  });

  return {
    storeWith,
    inModels,
    left: async (): Promise<string[]> => (await readdir(inModels())).sort(),
    /** Computed without the hub. */
    wantedHash: async (): Promise<string> => {
      const other = new ModelStore(join(folder, 'other'));
      return (await other.add(hubModel, { as: 'wanted' })).hash!;
    },
  };
}
