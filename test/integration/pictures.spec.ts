import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
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
