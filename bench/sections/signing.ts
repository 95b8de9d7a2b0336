import 'reflect-metadata';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newIdentifier } from '@app/domain';
import { FileImageStorage } from '@app/storage';
import type { PictureParameters } from '../../apps/inference/src/pictures/image-encoder';
import { PictureCredentials } from '../../apps/inference/src/pictures/picture-credentials';
import { PictureStore } from '../../apps/inference/src/pictures/picture-store';
import type { RgbImage } from '../../apps/inference/src/engine/engine-protocol';
import { ensureOwnPair } from '../../apps/launcher/src/own-certificate';
import { BenchEngine, mixedRequests } from '../bench-engine';
import { figure, interleave, msOf, ratios, type Section } from '../section';

const [pictures, concurrent] = [8, 4];
const parameters = { model: 'shapes', model_hash: '0'.repeat(64), prompt: 'a star', negative_prompt: null };

export const signing: Section = {
  name: 'signing',
  title: 'Signed pictures',
  about: `Time of ${pictures} pictures that are drawn, ${concurrent} at a time, and stored as PNG with Content Credentials, divided by the time of as many without.`,
  rounds: 5,
  async measure(options) {
    const folder = mkdtempSync(join(tmpdir(), 'darkroom-signing-'));
    const bench = await BenchEngine.start(options);
    const silent = { log: () => undefined, warn: () => undefined };
    const pair = await ensureOwnPair(folder, silent.log);
    const credentials = new PictureCredentials({ credentials: { ...pair, prompt: false, isRequired: true } }, silent);
    const storeOf = (signs: PictureCredentials): PictureStore => new PictureStore(new FileImageStorage(folder), signs);
    const drawInto = (store: PictureStore) => (round: number) => msOf(() => drawAll(bench, store, round));
    const sides = {
      plain: drawInto(storeOf(new PictureCredentials({}, silent))),
      signed: drawInto(storeOf(credentials)),
    };
    const times = await interleave(sides, options.rounds);
    await credentials.onApplicationShutdown();
    await bench.close();
    rmSync(folder, { recursive: true });
    return [figure('signed / not signed', ratios(times.signed, times.plain), { atMost: 1.05 })];
  },
};

/** Draws the next while the last are encoded, as the worker does. */
async function drawAll(bench: BenchEngine, store: PictureStore, round: number): Promise<void> {
  const requests = mixedRequests(pictures, round, { steps: [10, 15], pictures: [1] });
  const stored: Promise<unknown>[] = [];
  const draw = async (): Promise<void> => {
    for (let request = requests.pop(); request; request = requests.pop())
      for (const picture of await bench.draw(request)) stored.push(save(store, picture));
  };
  await Promise.all(Array.from({ length: concurrent }, draw));
  await Promise.all(stored);
}

function save(store: PictureStore, picture: RgbImage): Promise<unknown> {
  const task = { id: newIdentifier(), kind: 'generation' as const, attempt: 1, ownerId: 'bench' };
  const order = { ...task, outputFormat: 'png' as const, highResolution: false, inputs: null };
  const drawn = { index: 0, picture, parameters: parameters as PictureParameters, isFirst: true };
  return store.save(order, drawn, new AbortController().signal);
}
