import { setImmediate } from 'node:timers/promises';
import { limits, Phrase } from '@app/domain';
import { startTestApi } from '../support/api';
import { type FinetuneJson, makeFinetune, type PromptJson } from '../support/factories';
import { ofSuite, ofTest } from '../support/of-suite';

/** So many of the longest texts fit into a body, and into what one request makes of Styles. */
const count = 30;
const name = 'a '.repeat(limits.nameLength / 2).trim();
/** CLIP reads nothing of white space. */
const longText = (index: number): string => `${name}${String(index).padStart(limits.promptLength - name.length)}`;

describe('The longest texts', () => {
  const api = ofSuite(() => startTestApi({ MAX_QUEUED_PER_KEY: '0', RATE_LIMIT_PER_MINUTE: '0' }));
  const key = ofTest(() => api.createKey());

  /** Most searches for words between two rounds of the event loop, and what others were answered meanwhile. */
  async function watched<T>(work: Promise<T>): Promise<{ done: T; most: number; searches: number; answered: number }> {
    const searched = jest.spyOn(Phrase.prototype, 'placesIn');
    let [most, answered, isOver] = [0, 0, false];
    const rounds = async (): Promise<void> => {
      for (let before = 0; !isOver; before = searched.mock.calls.length) {
        await setImmediate();
        most = Math.max(most, searched.mock.calls.length - before);
      }
    };
    const others = async (): Promise<void> => {
      while (!isOver) if ((await fetch(`${api.baseUrl}/health/live`)).ok) answered++;
    };
    const watching = [rounds(), others()];
    const done = await work.finally(() => (isOver = true));
    await Promise.all(watching);
    const searches = searched.mock.calls.length;
    searched.mockRestore();
    return { done, most, searches, answered };
  }

  it('of Prompts and Styles are read a few at a time, and others are answered in between', async () => {
    const { id } = await makeFinetune(api, key, { name, model: 'shapes' });
    const body = Array.from({ length: count }, (_, i) => ({ prompt: longText(i) }));
    const prompts = await watched(api.request<PromptJson[]>('POST', `/v1/finetunes/${id}/prompts`, { key, body }));
    expect(prompts.done.status).toBe(201);
    const styles = prompts.done.body.map(({ id: prompt }, i) => ({ id: prompt, name: `style ${i}` }));
    const collection = await watched(
      api.request<FinetuneJson>('POST', '/v1/prompts/collections', { key, body: { name: 'long', styles } }),
    );
    expect(collection.done.status).toBe(201);
    const short = await makeFinetune(api, key, { name: 'b', model: 'shapes' });
    const applied = await watched(
      api.request<PromptJson[]>('POST', `/v1/finetunes/${short.id}/styles`, {
        key,
        body: [{ id: collection.done.body.id }],
      }),
    );
    expect(applied.done.status).toBe(201);
    for (const { most, searches, answered } of [prompts, collection, applied]) {
      expect(searches).toBeGreaterThanOrEqual(3 * count);
      expect(most).toBeLessThan(searches / 3);
      expect(answered).toBeGreaterThan(0);
    }
  });
});
