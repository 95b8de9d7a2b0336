import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import sharp from 'sharp';
import type { TestKey } from '../support/api';
import { loadGoldenTable } from '../support/golden';
import { psnr } from '../support/psnr';
import { startTestService } from '../support/service';
import { until } from '../support/until';
import { ofSuite } from '../support/of-suite';

interface GoldenCase {
  prompt: string;
  steps: number;
  cfg: number;
  seed: number;
  scale: number;
  index: number;
}

interface PromptJson {
  id: string;
  prompt: string;
  images: string[];
  error_message: string | null;
}

interface NamedJson {
  id: string;
  name: string;
  thumbnail: string | null;
}

const golden = join(__dirname, '..', 'golden');
const weights = join(golden, 'models', 'lora', 'zwx-robot-diffusers.safetensors');
const cases = loadGoldenTable<GoldenCase[]>('lora/pipeline');
const [trained, untrained, portrait] = [0, 2, 3].map((index) => cases[index]);

/** Pictures of other machines differ by rounding only. */
const enoughDecibels = 45;

jest.setTimeout(600_000);

describe('The story of a robot', () => {
  const service = ofSuite(startTestService);
  let key: TestKey;

  beforeAll(async () => {
    key = await service.createKey();
  });

  const call = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const reply = await service.request<T>(method, path, { key, ...(body !== undefined && { body }) });
    if (reply.status !== (method === 'POST' ? 201 : 200))
      throw new Error(`${method} ${path}: ${reply.status} ${reply.text}`);
    return reply.body;
  };
  /** The api under test listens on its own port, not on the one in its URLs. */
  const fetchImage = (url: string) => fetch(`${service.baseUrl}${new URL(url).pathname}`);
  const pixels = async (png: Uint8Array) => {
    const { data, info } = await sharp(png).removeAlpha().raw().toBuffer({ resolveWithObject: true });
    return { data, width: info.width, height: info.height };
  };
  const likeness = async (url: string, { index }: GoldenCase) =>
    psnr(
      await pixels(new Uint8Array(await (await fetchImage(url)).arrayBuffer())),
      await pixels(await readFile(join(golden, 'data', 'lora', `${index}.png`))),
    );
  const drawn = (finetuneId: string, id: string): Promise<PromptJson> =>
    until(async () => {
      const prompt = await call<PromptJson>('GET', `/v1/finetunes/${finetuneId}/prompts/${id}`);
      if (prompt.error_message) throw new Error(prompt.error_message);
      return prompt.images.length > 0 && prompt;
    }, 'the Prompt is drawn');
  const asked = ({ prompt, steps, cfg, seed }: GoldenCase) => ({ prompt, steps, cfg, seed });
  const traces = async () => {
    const tables = ['finetunes', 'finetune_prompts', 'tasks', 'images'];
    const rows = await Promise.all(
      tables.map(async (table) => service.dataSource.query<unknown[]>(`SELECT id FROM ${table}`)),
    );
    const owned = await service.dataSource.query<unknown[]>(
      'SELECT id FROM collections WHERE owner_id IS NOT NULL UNION SELECT id FROM styles WHERE owner_id IS NOT NULL',
    );
    return { rows: [...rows, owned].map(({ length }) => length), files: await service.backEnds.storage.contents() };
  };

  it('is trained, drawn, made a Style, applied to another object, and deleted', async () => {
    const before = await traces();
    expect(before.rows).toEqual([0, 0, 0, 0, 0]);

    // Register an object. Without weights it is drawn by the base model alone, which knows no robot.
    const robot = await call<{ id: string; status: string; token: string }>('POST', '/v1/finetunes', {
      name: 'robot',
      title: 'My tin robot',
      model: 'shapes',
    });
    expect(robot).toMatchObject({ status: 'registered', token: 'zwx' });
    const prompts = `/v1/finetunes/${robot.id}/prompts`;
    const [early] = await call<PromptJson[]>('POST', prompts, [asked(untrained)]);
    const without = await drawn(robot.id, early.id);
    expect(await likeness(without.images[0], untrained)).toBeGreaterThan(enoughDecibels);
    expect(await likeness(without.images[0], trained)).toBeLessThan(25);

    // Upload the trained weights: the same words and the same seed now draw the robot.
    const upload = await service.request('PUT', `/v1/finetunes/${robot.id}/weights`, {
      key,
      raw: await readFile(weights),
      headers: { 'content-type': 'application/octet-stream' },
    });
    expect([upload.status, upload.body.status]).toEqual([200, 'ready']);
    const withoutToken = { ...asked(trained), prompt: trained.prompt.replace('zwx ', '') };
    const made = await call<PromptJson[]>('POST', prompts, [
      withoutToken,
      { ...asked(portrait), aspect_ratio: 'portrait' },
    ]);
    expect(made.map(({ prompt }) => prompt)).toEqual([withoutToken.prompt, portrait.prompt]);
    const [red, blue] = [await drawn(robot.id, made[0].id), await drawn(robot.id, made[1].id)];
    expect(await likeness(red.images[0], trained)).toBeGreaterThan(enoughDecibels);
    expect(await likeness(blue.images[0], portrait)).toBeGreaterThan(enoughDecibels);

    // Make a Collection of the two Prompts, with their pictures as thumbnails.
    const scenes = await call<NamedJson>('POST', '/v1/prompts/collections', {
      name: 'Scenes',
      styles: [
        { id: red.id, name: 'On white', steps: 3 },
        { id: blue.id, name: 'On yellow', steps: 3, cfg: 4 },
      ],
    });
    // The request waits two seconds for them; on a busy machine they come later.
    const styles = await until(async () => {
      const found = await call<NamedJson[]>('GET', `/v1/prompts/collections/${scenes.id}/styles`);
      return found.every(({ thumbnail }) => thumbnail !== null) && found;
    }, 'the Styles have their thumbnails');
    expect(styles.map(({ name }) => name)).toEqual(['On yellow', 'On white']);
    const { thumbnail } = await call<NamedJson>('GET', `/v1/prompts/collections/${scenes.id}`);
    expect(thumbnail).toBe(styles[1].thumbnail);
    for (const { thumbnail } of styles) {
      const picture = await pixels(new Uint8Array(await (await fetchImage(thumbnail!)).arrayBuffer()));
      expect([picture.width, picture.height]).toEqual([256, 256]);
    }

    // The Styles outlive the Prompts, with their thumbnails.
    for (const { id } of [red, blue]) await call('DELETE', `${prompts}/${id}`);
    expect((await fetchImage(red.images[0])).status).toBe(404);
    expect((await fetchImage(styles[0].thumbnail!)).status).toBe(200);

    // Draw another object with all of them.
    const star = await call<{ id: string }>('POST', '/v1/finetunes', { name: 'star', token: 'qrs', model: 'shapes' });
    const applied = await call<PromptJson[]>('POST', `/v1/finetunes/${star.id}/styles`, [
      { id: scenes.id, seed: 7, aspect_ratio: ['landscape'] },
    ]);
    expect(applied).toHaveLength(2);
    const pictures: string[] = [];
    for (const { id } of applied) {
      const { prompt, images } = await drawn(star.id, id);
      pictures.push(prompt);
      const response = await fetchImage(images[0]);
      expect(response.headers.get('content-type')).toBe('image/png');
      const { width, height } = await pixels(new Uint8Array(await response.arrayBuffer()));
      expect([width, height]).toEqual([768, 512]);
    }
    expect(pictures).toEqual(['a red qrs star on a white background', 'a blue qrs star on a yellow background']);

    // Delete everything.
    expect(await call('DELETE', `/v1/prompts/collections/${scenes.id}`)).toEqual({
      delete: `Collection ${scenes.id} has been deleted successfully.`,
    });
    for (const { id } of [robot, star]) await call('DELETE', `/v1/finetunes/${id}`);
    expect(await traces()).toEqual(before);
  });
});
