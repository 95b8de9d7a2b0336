import { setTimeout as delay } from 'node:timers/promises';
import type { GenerationBody } from '../../caller';
import { encodeSafetensors } from '../../../support/safetensors';
import { judge } from './first-key';
import { neighbourRow } from './neighbour-row';

const vectors = 75;
const width = 128;
/** The word that stands for the vectors, as often as a Prompt has room for it. */
const token = 'q';
const times = 990;
/** 32 chunks of 75 tokens, minus those of the rest of the text. */
const acceptedTimes = 31;
const refusalMs = { long: 2_000, short: 15_000 };
/** As few as the other key's, which has to wait for the current one. */
const steps = 2;
const jobPatienceMs = 120_000;

/** Prompts with far more tokens than words. */
export const longPrompts = neighbourRow({
  name: 'long-prompts',
  title: 'a word of 75 vectors, 990 times in a Prompt',
  async prepare({ first, size }) {
    const id = await first.make('/v1/finetunes', { name: 'robot', token, model: 'shapes' });
    const values = Array.from({ length: vectors * width }, (_, i) => Math.sin(i) / 10);
    const file = encodeSafetensors({ [token]: { shape: [vectors, width], values } });
    const put = await first.send({ method: 'PUT', path: `/v1/finetunes/${id}/weights`, body: file });
    if (put.status !== 200) throw new Error(`The embedding is answered ${put.status}: ${put.text}`);
    const path = `/v1/finetunes/${id}/prompts`;
    const prompt = (count: number): string => `robot ${`${token} `.repeat(count).trim()}`;
    const draw = async (text: string): Promise<string | undefined> => {
      const answer = await first.post(path, [{ prompt: text, steps, seed: 1 }]);
      if (answer.status !== 201) return `a Prompt is answered ${answer.status}: ${answer.text.slice(0, 200)}`;
      const [record] = JSON.parse(answer.text) as GenerationBody[];
      for (const deadline = Date.now() + jobPatienceMs; Date.now() < deadline; await delay(100)) {
        const shown = await first.send({ method: 'GET', path: `${path}/${record.id}` });
        if (/"images":\["/.test(shown.text)) return undefined;
        if (/"error_message":"/.test(shown.text)) return `a Prompt failed: ${shown.text.slice(0, 300)}`;
      }
      await first.send({ method: 'DELETE', path: `${path}/${record.id}` });
      return `a Prompt was not drawn in ${jobPatienceMs} ms`;
    };
    const refuse = async (): Promise<string | undefined> => {
      const answer = await first.post(path, [{ prompt: prompt(times), steps: 1 }]);
      if (answer.status === 422 && answer.text.includes('PromptTooLong') && answer.elapsedMs < refusalMs[size])
        return undefined;
      const code = /"code":"(\w+)"/.exec(answer.text)?.[1] ?? '';
      return (
        judge(answer) ??
        `${times * vectors} tokens are answered ${answer.status} ${code} after ${Math.round(answer.elapsedMs)} ms`
      );
    };
    const rate = { atOnce: 2, everyMs: 500 };
    return {
      harmless: { name: 'short prompts', ...rate, send: () => draw(prompt(1)) },
      hostile: [
        { name: 'too long', ...rate, send: refuse },
        { name: 'the longest', ...rate, send: () => draw(prompt(acceptedTimes)) },
      ],
    };
  },
});
