import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { JsonLogger } from '@app/observability';
import sharp from 'sharp';
import { PicturesService } from '../../apps/api/src/files/pictures.service';
import { pictureChildFile } from '../support/api';

describe(PicturesService.name, () => {
  let folder: string;
  let pictures: PicturesService;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'darkroom-pictures-'));
    PicturesService.childFile = pictureChildFile;
  });

  beforeEach(() => (pictures = new PicturesService(new JsonLogger('test', 'silent'))));
  afterEach(() => pictures.onApplicationShutdown());
  afterAll(() => rm(folder, { recursive: true }));

  const task = {
    ownerId: 'a',
    prompt: 'a star over Berlin',
    aspectRatio: 'portrait',
    highResolution: false,
    outputFormat: 'png',
  } as const;

  it('draws every size and format, with a different picture for each seed', async () => {
    for (const outputFormat of ['png', 'jpeg', 'webp'] as const)
      for (const highResolution of [false, true]) {
        const { file, ...said } = await pictures.drawSandbox({ ...task, outputFormat, highResolution }, 7);
        const { format, width, height } = await sharp(file).metadata();
        const size = highResolution ? { width: 2731, height: 4096 } : { width: 512, height: 768 };
        expect({ format, width, height }).toEqual({ format: outputFormat, ...size });
        expect(said).toMatchObject({ contentType: `image/${outputFormat}`, ...size });
      }
    const other = await pictures.drawSandbox(task, 8);
    expect(Buffer.compare(other.file, (await pictures.drawSandbox(task, 7)).file)).not.toBe(0);
  });

  it('returns a picture that it made before without its process', async () => {
    const { file } = await pictures.drawSandbox(task, 7);
    process.kill(pictures.pid ?? 0, 'SIGKILL');
    const again = await pictures.drawSandbox({ ...task, ownerId: 'b' }, 7);
    expect(again.file).toBe(file);
  });

  it('draws while it waits for the file of another picture', async () => {
    let come: (path: string) => void = () => undefined;
    const file = new Promise<string>((resolve) => (come = resolve));
    const thumbnail = pictures.drawThumbnail('a', 'late', () => file);
    const path = join(folder, 'late.png');
    await writeFile(path, (await pictures.drawSandbox({ ...task, ownerId: 'b' }, 10)).file);
    come(path);
    expect((await sharp(await thumbnail).metadata()).format).toBe('png');
  });

  it('fails only the picture that cannot be read', async () => {
    const path = join(folder, 'broken.png');
    await writeFile(path, 'no picture');
    const [broken, good] = await Promise.allSettled([
      pictures.drawThumbnail('a', 'broken', async () => path),
      pictures.drawSandbox(task, 9),
    ]);
    expect(broken).toMatchObject({ status: 'rejected', reason: { failure: 'failed' } });
    expect(good.status).toBe('fulfilled');
  });

  it('rejects a picture with more pixels than any of ours before decoding it', async () => {
    const path = join(folder, 'large.png');
    const create = { width: 5000, height: 5000, channels: 3, background: 'red' } as const;
    await sharp({ create }).png().toFile(path);
    await expect(pictures.drawThumbnail('a', 'large', async () => path)).rejects.toThrow(/pixel limit/);
  });

  it('lets the thumbnail of one key overtake the queue of another', async () => {
    const path = join(folder, 'good.png');
    await sharp({ create: { width: 64, height: 64, channels: 3, background: 'red' } })
      .png()
      .toFile(path);
    const order: string[] = [];
    const mine = Array.from({ length: 5 }, (_, seed) =>
      pictures.drawSandbox(task, seed).then(() => order.push(`a${seed}`)),
    );
    await Promise.all([...mine, pictures.drawThumbnail('b', 'good', async () => path).then(() => order.push('b'))]);
    expect(order.indexOf('b')).toBeLessThanOrEqual(2);
  });
});

describe('the api process', () => {
  it('loads no library that draws, decodes or encodes pictures', () => {
    const script = `
      require('./dist/apps/api/src/create-api.js');
      const loaded = Object.keys(require.cache).filter((file) => /node_modules.(sharp|@img)\\b|picture-child/.test(file));
      console.log(JSON.stringify({ loaded, modules: Object.keys(require.cache).length }));`;
    const { loaded, modules } = JSON.parse(execFileSync(process.execPath, ['-e', script], { encoding: 'utf8' })) as {
      loaded: string[];
      modules: number;
    };
    expect(loaded).toEqual([]);
    expect(modules).toBeGreaterThan(100);
  });
});
