import sharp from 'sharp';
import type { Caller } from '../../caller';
import type { Site } from '../../site';
import { idOf } from './load';

/** A record, and where it is; its pictures are in `images`. */
export interface NewRecord {
  what: string;
  path: string;
}

const generations = '/v1/sd/text-to-image';
const size = { width: 256, height: 384 };
const user = 'customer-1';

/** Makes a record with each thing that older versions do not know. @param picture URL of one elsewhere */
export async function makeNewRecords(site: Site, caller: Caller, picture: string): Promise<NewRecord[]> {
  const records: NewRecord[] = [];
  const make = async (what: string, path: string, body: object): Promise<void> => {
    const answer = await caller.request('POST', path, body);
    if (answer.status !== 201) throw new Error(`${what}: ${answer.status} ${answer.text}`);
    const made = [JSON.parse(answer.text) as { id: string }].flat();
    for (const { id } of made) {
      site.ledger.acknowledge(id, true);
      const under = path.endsWith('/styles') ? path.replace(/styles$/, 'prompts') : path;
      records.push({ what, path: `${under}/${id}` });
    }
  };
  const one = { prompt: 'a red robot', steps: 2, webhook: site.receiver.url };
  const drawn = { ...one, model: 'shapes' };
  await make('a size', generations, { ...drawn, ...size, user, metadata: 'a string' });
  await make('a ratio', generations, { ...drawn, aspect_ratio: '16:9', metadata: 7 });
  await make("the picture's shape", generations, { ...drawn, image: picture, metadata: [1, 'two'] });
  await make('outpainting', generations, {
    ...drawn,
    image: picture,
    outpaint: { x: 0, y: 0 },
    width: 768,
    height: 512,
  });

  const finetune = idOf(
    await caller.request('POST', '/v1/finetunes', { name: 'robot', model: 'shapes', metadata: 'x' }),
  );
  const prompts = `/v1/finetunes/${finetune}/prompts`;
  const scheduler = { scheduler: 'euler', output_format: 'webp', prompt_weighting: true };
  await make('eight pictures', prompts, [{ ...one, num_generations: 8, user, metadata: false, ...size }]);
  await make('a scheduler', prompts, [{ ...one, ...scheduler, aspect_ratio: '3:2' }]);
  await make('an outpainted Prompt', prompts, [{ ...one, image: picture, outpaint: true, width: 768, height: 512 }]);
  const styles = [{ id: records.at(-1)!.path.split('/').at(-1), name: 'night' }];
  const collection = idOf(await caller.request('POST', '/v1/prompts/collections', { name: 'a trip', styles }));
  const { text } = await caller.request('GET', `/v1/prompts/collections/${collection}/styles`);
  const [{ id: style }] = JSON.parse(text) as { id: string }[];
  const applied = { id: style, webhook: site.receiver.url, num_generations: 2, user, ...size };
  await make('a Style', `/v1/finetunes/${finetune}/styles`, [applied]);
  return records;
}

/** Reads and lists records with their pictures. @returns what is wrong */
export async function readRecords(caller: Caller, records: readonly NewRecord[]): Promise<string[]> {
  const problems: string[] = [];
  for (const { what, path } of records) {
    const { status, text } = await caller.request('GET', path);
    const list = await caller.request('GET', path.slice(0, path.lastIndexOf('/')));
    const status2 = path.includes('/prompts/') ? (await caller.request('GET', `${path}/status`)).status : 200;
    if (status !== 200 || status2 !== 200) problems.push(`${what}: read with ${status}: ${text}`);
    else if (list.status !== 200 || !list.text.includes(path.slice(path.lastIndexOf('/') + 1)))
      problems.push(`${what}: listed with ${list.status}`);
    else problems.push(...(await pictureProblems(what, JSON.parse(text) as Shown)));
  }
  return problems;
}

interface Shown {
  images: string[];
  width?: number;
  height?: number;
}

async function pictureProblems(what: string, { images, ...shown }: Shown): Promise<string[]> {
  if (images.length === 0) return [`${what}: no picture`];
  const problems: string[] = [];
  for (const url of images) {
    const response = await fetch(url);
    const { width, height } = await sharp(Buffer.from(await response.arrayBuffer())).metadata();
    if (shown.width && (width !== shown.width || height !== shown.height))
      problems.push(`${what}: drawn at ${width} x ${height}, told as ${shown.width} x ${shown.height}`);
  }
  return problems;
}

/** Deletes records. @returns what is wrong */
export async function deleteRecords(caller: Caller, records: readonly NewRecord[]): Promise<string[]> {
  const problems: string[] = [];
  for (const { what, path } of records) {
    const { status } = await caller.request('DELETE', path);
    const { status: after } = await caller.request('GET', path);
    if (status !== 200 || after !== 404) problems.push(`${what}: deleted with ${status}, then read with ${after}`);
  }
  return problems;
}
