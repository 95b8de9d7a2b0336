import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Upscalers } from './upscalers';

describe(Upscalers.name, () => {
  const modelsDir = mkdtempSync(join(tmpdir(), 'darkroom-upscalers-'));
  const folder = join(modelsDir, 'upscalers');
  let upscalers: Upscalers;

  beforeEach(() => (upscalers = new Upscalers({ modelsDir })));
  afterAll(() => rmSync(modelsDir, { recursive: true }));

  it('finds none where none is installed', async () => {
    expect(await upscalers.find()).toBeUndefined();
  });

  it('reads the first file by name once, however many ask at the same time, and again when it has changed', async () => {
    mkdirSync(folder);
    for (const name of ['second', 'first']) writeFileSync(join(folder, `${name}.onnx`), name);
    const [one, another] = await Promise.all([upscalers.find(), upscalers.find()]);
    expect(one?.label).toMatch(/^first@[0-9a-f]{12}$/);
    expect(one?.source.name).toBe('first.onnx');
    expect(another).toBe(one);
    writeFileSync(join(folder, 'first.onnx'), 'another file');
    expect((await upscalers.find())?.label).not.toBe(one?.label);
  });

  it('passes over pipes and folders of such a name', async () => {
    execFileSync('mkfifo', [join(folder, 'a-pipe.onnx')]);
    mkdirSync(join(folder, 'a-folder.onnx'));
    expect((await upscalers.find())?.source.name).toBe('first.onnx');
  });
});
