import { keyKinds, writePair } from '../support/certificates';
import { manifestsIn } from '../support/manifests';
import { recordId, signingSite } from '../support/signing';

type KeyKind = keyof typeof keyKinds;

describe("A picture's manifest", () => {
  const { folder, signerOf, signed, written } = signingSite();

  it('is valid in each format, of each kind of key, drawn and edited', async () => {
    const rows: [name: string, file: string, actions: string[], ingredients: string[]][] = [];
    for (const kind of Object.keys(keyKinds) as KeyKind[]) {
      const signer = signerOf(await writePair(folder, kind, { kind }));
      for (const format of ['png', 'jpeg', 'webp'] as const) {
        const { bytes } = await signed(signer, { format });
        const given = [{ field: 'image', sha256: 'aa', credentials: { bytes, type: `image/${format}` } }];
        const edited = await signed(signer, { format, given });
        const name = `${kind} ${format}`;
        rows.push(
          [`${name} drawn`, written(`${kind}-drawn.${format}`, bytes), ['c2pa.created'], []],
          [
            `${name} edited`,
            written(`${kind}-edited.${format}`, edited.bytes),
            ['c2pa.opened', 'c2pa.edited'],
            ['image'],
          ],
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

  const several = [
    { id: 'a', weights_hash: 'w1', weights_scale: 1 },
    { id: 'b', weights_scale: 1 },
    { id: 'c', weights_hash: 'w2', weights_scale: 0.5 },
  ];
  it.each<[string, Parameters<typeof signed>[1], object]>([
    ['neither the prompt nor weights by default', {}, {}],
    ['both prompts where it is to', { withPrompt: true }, { prompt: 'a star', negative_prompt: 'rain' }],
    ['one where there is one', { withPrompt: true, more: { negative_prompt: null } }, { prompt: 'a star' }],
    ["a Fine-Tune's weights", { more: { weights_hash: 'w1' } }, { weights_hashes: ['w1'] }],
    ['the weights of several Fine-Tunes', { more: { finetunes: several } }, { weights_hashes: ['w1', 'w2'] }],
  ])('tells %s', async (name, asked, said) => {
    const { bytes } = await signed(await writePair(folder, 'told'), asked);
    const [found] = manifestsIn([written(`${name}.png`, bytes)]);
    expect(found?.actions.map(({ parameters }) => parameters)).toEqual([{ record: recordId, index: 2, ...said }]);
  });
});
