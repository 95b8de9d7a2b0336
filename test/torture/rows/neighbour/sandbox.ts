import { setTimeout as delay } from 'node:timers/promises';
import type { GenerationBody } from '../../caller';
import { type Load, neighbourRow } from './neighbour-row';

const jobsAtOnce = 4;
/** Of each job; a large one takes a second or two of a processor. */
const images = { long: 8, short: 1 };
/** A job that takes longer is canceled, so that the row ends. */
const jobPatienceMs = { long: 90_000, short: 300_000 };

/** Pictures of 4096 pixels that no engine draws. */
export const sandbox = neighbourRow({
  name: 'sandbox',
  title: '4 sandbox jobs of pictures in high resolution',
  sandbox: true,
  async prepare({ first, size }) {
    let finished = 0;
    const job =
      (high_resolution: boolean): Load['send'] =>
      async (turn) => {
        const fields = {
          prompt: 'a red circle',
          model: 'shapes',
          num_generations: images[size],
          seed: turn * images[size],
        };
        const path = '/v1/sd/text-to-image';
        const made = await first.post(path, { ...fields, high_resolution });
        if (made.status !== 201) return `a job is answered ${made.status}: ${made.text.slice(0, 200)}`;
        const { id } = JSON.parse(made.text) as GenerationBody;
        for (const deadline = Date.now() + jobPatienceMs[size]; ; await delay(250)) {
          const { text } = await first.send({ method: 'GET', path: `${path}/${id}` });
          if (/"status":"succeeded"/.test(text)) {
            if (high_resolution) finished++;
            return undefined;
          }
          if (/"status":"(failed|canceled)"/.test(text)) return `a job ended so: ${text.slice(0, 300)}`;
          if (Date.now() < deadline) continue;
          await first.send({ method: 'POST', path: `${path}/${id}/cancel` });
          return undefined;
        }
      };
    const rate = { atOnce: jobsAtOnce, everyMs: 3_000 };
    return {
      lastsMs: size === 'long' ? 15_000 : 3_000,
      harmless: { name: 'plain sandbox jobs', ...rate, send: job(false) },
      hostile: [{ name: 'large sandbox jobs', ...rate, send: job(true) }],
      check: async () => (finished === 0 ? ['no large sandbox job was finished'] : []),
    };
  },
});
