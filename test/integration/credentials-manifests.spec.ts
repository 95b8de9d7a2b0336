import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PictureSigner } from '@app/credentials';
import sharp from 'sharp';
import type { PictureParameters } from '../../apps/inference/src/pictures/image-encoder';
import { claimsOf, type GivenPicture } from '../../apps/inference/src/pictures/picture-claims';
import { keyKinds, writePair } from '../support/certificates';
import { manifestsIn } from '../support/manifests';

const folder = mkdtempSync(join(tmpdir(), 'darkroom-manifests-'));
const signers: PictureSigner[] = [];
afterAll(async () => {
  await Promise.all(signers.map((signer) => signer.close()));
  rmSync(folder, { recursive: true });
});

const formats = ['png', 'jpeg', 'webp'] as const;
type KeyKind = keyof typeof keyKinds;

async function signerOf(kind: KeyKind): Promise<PictureSigner> {
  const signer = new PictureSigner(await writePair(folder, kind, { kind }));
  signers.push(signer);
  return signer;
}

const parameters = { prompt: 'a star', negative_prompt: 'rain', model: 'shapes', model_hash: 'abc' };

interface Asked {
  format?: (typeof formats)[number];
  given?: GivenPicture[];
  more?: Partial<PictureParameters>;
  withPrompt?: boolean;
}

async function sign(
  signer: PictureSigner,
  { format = 'png', given = [], more = {}, withPrompt = false }: Asked,
): Promise<Uint8Array> {
  const plain = sharp({ create: { width: 16, height: 16, channels: 3, background: '#2060e0' } });
  const file = { bytes: await plain.toFormat(format).toBuffer(), type: `image/${format}` };
  const of = { id: 'Vb3kP0tTq2m8XcZr5LwYd1Ha', index: 0, given };
  const claims = claimsOf({ ...of, parameters: { ...parameters, ...more } as PictureParameters }, withPrompt);
  return (await signer.sign('somebody', { ...file, ...claims })).bytes;
}

function written(name: string, bytes: Uint8Array): string {
  writeFileSync(join(folder, name), bytes);
  return join(folder, name);
}

describe("A picture's manifest", () => {
  it('is valid in each format, of each kind of key, drawn and edited', async () => {
    const rows: [name: string, file: string, actions: string[], ingredients: string[]][] = [];
    for (const kind of Object.keys(keyKinds) as KeyKind[]) {
      const signer = await signerOf(kind);
      for (const format of formats) {
        const drawn = await sign(signer, { format });
        const given = [{ field: 'image', sha256: 'aa', credentials: { bytes: drawn, type: `image/${format}` } }];
        const edited = await sign(signer, { format, given });
        const name = `${kind} ${format}`;
        rows.push(
          [`${name} drawn`, written(`${kind}-drawn.${format}`, drawn), ['c2pa.created'], []],
          [`${name} edited`, written(`${kind}-edited.${format}`, edited), ['c2pa.opened', 'c2pa.edited'], ['image']],
        );
      }
    }
    expect(rows).toHaveLength(24);
    const found = manifestsIn(rows.map(([, file]) => file));
    const told = rows.map(([name], i) => {
      const { state, actions = [], ingredients } = found[i] ?? {};
      return [name, state, actions.map(({ action }) => action), ingredients];
    });
    expect(told).toEqual(rows.map(([name, , actions, ingredients]) => [name, 'Valid', actions, ingredients]));
  });

  it.each<[string, Asked, object]>([
    ['neither the prompt nor weights by default', {}, {}],
    ['the prompts where it is to', { withPrompt: true }, { prompt: 'a star', negative_prompt: 'rain' }],
    [
      'no negative prompt where there is none',
      { withPrompt: true, more: { negative_prompt: null } },
      { prompt: 'a star' },
    ],
    ["a Fine-Tune's weights", { more: { weights_hash: 'w1' } }, { weights_hashes: ['w1'] }],
    [
      'the weights of each of several Fine-Tunes',
      {
        more: {
          finetunes: [
            { id: 'a', weights_hash: 'w1', weights_scale: 1 },
            { id: 'b', weights_scale: 1 },
            { id: 'c', weights_hash: 'w2', weights_scale: 0.5 },
          ],
        },
      },
      { weights_hashes: ['w1', 'w2'] },
    ],
  ])('tells %s', async (_, asked, said) => {
    const [found] = manifestsIn([written('told.png', await sign(signers[0], asked))]);
    expect(found?.actions.map((each) => each.parameters)).toEqual([
      { record: 'Vb3kP0tTq2m8XcZr5LwYd1Ha', index: 0, ...said },
    ]);
  });
});
