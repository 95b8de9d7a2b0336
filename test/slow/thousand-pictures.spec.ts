import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { newIdentifier } from '@app/domain';
import type { PictureParameters } from '../../apps/inference/src/pictures/image-encoder';
import { PictureStore } from '../../apps/inference/src/pictures/picture-store';
import { writePair } from '../support/certificates';
import { createInferenceBench } from '../support/inference';
import { manifestsIn } from '../support/manifests';
import { startWorker } from '../support/worker';

const folder = mkdtempSync(join(tmpdir(), 'darkroom-thousand-'));
afterAll(() => rmSync(folder, { recursive: true }));

it('A worker signs a thousand pictures of many callers while it draws, and each is valid', async () => {
  const { certificate, key } = await writePair(folder, 'load');
  const bench = await createInferenceBench({
    ...{ CREDENTIALS: 'required', CREDENTIALS_CERTIFICATE: certificate, CREDENTIALS_KEY: key },
  });
  const worker = await startWorker(bench);
  const store = worker.get(PictureStore);
  const picture = { data: new Uint8Array(64 * 64 * 3).fill(100), width: 64, height: 64 };
  const parameters = { model: 'shapes', model_hash: 'abc', prompt: 'a star', negative_prompt: null };
  const formats = ['png', 'jpeg', 'webp'] as const;
  const fileOf = async (storageKey: string, name: string): Promise<string> => {
    writeFileSync(join(folder, name), await buffer((await bench.storage.read(storageKey))!.stream));
    return join(folder, name);
  };
  const save = async (n: number): Promise<string> => {
    const task = { id: newIdentifier(), kind: 'generation' as const, attempt: 1, ownerId: `owner ${n % 7}` };
    const order = { ...task, outputFormat: formats[n % 3], highResolution: false, inputs: null };
    const never = new AbortController().signal;
    const drawn = { index: 0, picture, parameters: parameters as PictureParameters, isFirst: true };
    const { storageKey } = await store.save(order, drawn, never);
    return fileOf(storageKey, `${n}.${formats[n % 3]}`);
  };
  let isSigned = false;
  const drawMeanwhile = async (): Promise<string[]> => {
    const drawn: string[] = [];
    while (!isSigned) {
      const { id } = await bench.addTask();
      const { images } = await bench.terminated(id);
      drawn.push(await fileOf(images[0].storageKey, `${id}.png`));
    }
    return drawn;
  };
  const drawing = drawMeanwhile();
  const signed = await Promise.all(Array.from({ length: 1_000 }, (_, n) => save(n)));
  isSigned = true;
  const drawn = await drawing;
  expect(drawn.length).toBeGreaterThan(0);
  const states = manifestsIn([...signed, ...drawn]).map((each) => each?.state);
  expect(states).toEqual(states.map(() => 'Valid'));
  await bench.close();
});
