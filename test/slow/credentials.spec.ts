import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { PictureSigner } from '@app/credentials';
import sharp from 'sharp';
import type { PictureParameters } from '../../apps/inference/src/pictures/image-encoder';
import { claimsOf, type GivenPicture } from '../../apps/inference/src/pictures/picture-claims';
import { keyKinds, writePair } from '../support/certificates';

const read = (files: readonly string[]) =>
  spawnSync(process.execPath, [resolve('scripts', 'c2pa.mjs'), ...files], { encoding: 'utf8' });
/** Of a script that finds no Python. */
const outOfReach = 77;
const describeWherePossible = read([]).status === outOfReach ? describe.skip : describe;

describeWherePossible("C2PA's library for Python", () => {
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-c2pa-'));
  const parameters = { model: 'shapes', model_hash: 'abc', prompt: 'a star', negative_prompt: null };
  afterAll(() => rmSync(folder, { recursive: true }));

  it('finds all valid: each format, each kind of key, drawn and edited', async () => {
    const files: string[] = [];
    for (const kind of Object.keys(keyKinds) as (keyof typeof keyKinds)[]) {
      const signer = new PictureSigner(await writePair(folder, kind, { kind }));
      for (const format of ['png', 'jpeg', 'webp'] as const) {
        const type = `image/${format}`;
        const plain = sharp({ create: { width: 64, height: 48, channels: 3, background: '#2060e0' } });
        const bytes = await plain.toFormat(format).toBuffer();
        const sign = (given: GivenPicture[]) =>
          signer.sign('somebody', {
            ...{ bytes, type },
            ...claimsOf({ id: 'rec', index: 0, parameters: parameters as PictureParameters, given }, false),
          });
        const drawn = (await sign([])).bytes;
        const edited = await sign([{ field: 'image', sha256: 'aa', credentials: { bytes: drawn, type } }]);
        for (const [name, file] of Object.entries({ drawn, edited: edited.bytes })) {
          files.push(join(folder, `${kind}-${name}.${format}`));
          writeFileSync(files.at(-1)!, file);
        }
      }
      await signer.close();
    }
    const { stdout, stderr } = read(files);
    expect(stderr).toBe('');
    const found = stdout.trim().split('\n');
    const [drawn, edited] = [
      { state: 'Valid', actions: ['c2pa.created'], ingredients: [] },
      { state: 'Valid', actions: ['c2pa.opened', 'c2pa.edited'], ingredients: ['image'] },
    ];
    expect(found.map((line) => JSON.parse(line) as object)).toEqual(
      files.map((_, i) => (i % 2 === 0 ? drawn : edited)),
    );
  });
});
