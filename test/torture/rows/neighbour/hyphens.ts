import { judge, plainText, type RawRequest } from './first-key';
import { neighbourRow } from './neighbour-row';

const promptLength = 2_000;

/**
 * Names whose words can be separated in many ways, and texts that almost match them. The first one once made the
 * service hang forever.
 */
const lures: { name: string; token?: string; prompts: string[] }[] = [
  { name: '- - - - - - - - x', prompts: ['-', '- '] },
  { name: 'a a a a a a a a b', prompts: ['a ', 'a', 'a-'] },
  { name: 'a- a- a- a- a- a- b', prompts: ['a-', 'a- ', '-'] },
  { name: '-a -a -a -a -a -a b', token: '-a', prompts: ['-a', '-a ', '-'] },
  { name: `${'a '.repeat(99)}b`, token: `${'a-'.repeat(31)}b`, prompts: ['a ', 'a-', 'a - '] },
];

/** Names of Fine-Tunes that are searched for in long Prompts. */
export const hyphens = neighbourRow({
  name: 'hyphens',
  title: "a Fine-Tune's name that matches in many ways",
  async prepare({ first, size }) {
    const requests: RawRequest[] = [];
    const notes = { 'names refused': 0 };
    const problems: string[] = [];
    const post = (path: string, body: unknown): RawRequest => ({
      method: 'POST',
      path,
      body: Buffer.from(JSON.stringify(body)),
    });
    const finetunes: string[] = [];
    for (const { name, token, prompts } of lures) {
      const answer = await first.post('/v1/finetunes', { name, token, model: 'shapes' });
      if (answer.status === 400) notes['names refused']++;
      if (answer.status !== 201) {
        problems.push(judge(answer) ?? '');
        continue;
      }
      const { id } = JSON.parse(answer.text) as { id: string };
      finetunes.push(id);
      for (const piece of prompts) {
        const prompt = piece.repeat(promptLength).slice(0, promptLength);
        requests.push(post(`/v1/finetunes/${id}/prompts`, [{ prompt, steps: 1 }]));
      }
    }
    // A Style is made from a text that contains the name, which is searched for in the whole text.
    const [{ name }, id] = [lures[1], finetunes.at(-lures.length + 1)];
    const prompt = `${name} ${'a '.repeat(promptLength)}`.slice(0, promptLength);
    const made = await first.post(`/v1/finetunes/${id}/prompts`, [{ prompt, steps: 1 }]);
    if (made.status === 201) {
      const [record] = JSON.parse(made.text) as { id: string }[];
      requests.push(post('/v1/prompts/collections', { name: 'x', styles: [{ id: record.id, name: 'x' }] }));
    } else problems.push(`a Prompt with the name: ${made.status} ${made.text.slice(0, 200)}`);
    const robot = await first.make('/v1/finetunes', { name: 'robot', model: 'shapes' });
    const plain = post(`/v1/finetunes/${robot}/prompts`, [{ prompt: plainText(promptLength) }]);
    const rate = { atOnce: 2, everyMs: size === 'long' ? 100 : 200 };
    return {
      harmless: { name: 'plain prompts', ...rate, send: () => first.expectRefusal(plain) },
      hostile: [
        {
          name: 'hyphens',
          ...rate,
          send: (turn) => first.expectRefusal(requests[turn % requests.length]),
        },
      ],
      check: async () => problems.filter(Boolean),
      notes,
    };
  },
});
