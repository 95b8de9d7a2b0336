import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { entriesBelow } from './folder-files';

describe(entriesBelow, () => {
  let scratch: string;
  let folder: string;
  beforeEach(async () => {
    scratch = await mkdtemp(join(tmpdir(), 'darkroom-walk-'));
    folder = join(scratch, 'model');
    await mkdir(join(folder, 'unet'), { recursive: true });
    await writeFile(join(folder, 'unet/model.onnx'), '');
  });
  afterEach(() => rm(scratch, { recursive: true }));

  const paths = async (most?: number) => (await entriesBelow(folder, most)).map(({ path }) => path);

  it('follows links to files and folders, and tells one that leads nowhere', async () => {
    await mkdir(join(scratch, 'blobs'));
    await writeFile(join(scratch, 'blobs/weights'), '');
    await symlink('../../blobs/weights', join(folder, 'unet/weights'));
    await symlink('../blobs', join(folder, 'vae'));
    await symlink('nowhere', join(folder, 'dangling'));
    expect(await paths()).toEqual(['dangling', 'unet', 'vae', 'unet/model.onnx', 'unet/weights', 'vae/weights']);
    expect((await entriesBelow(folder)).map(({ found }) => found?.isFile())).toEqual([
      ...[undefined, false, false, true, true, true],
    ]);
  });

  it.each(['.', '..', '../..', '/'])('does not follow links to %s, in which they lie', async (target) => {
    for (const name of ['l1', 'l2']) await symlink(target, join(folder, 'unet', name));
    expect(await paths(10)).toEqual(['unet', 'unet/l1', 'unet/l2', 'unet/model.onnx']);
  });

  it('does not go round in folders that link to one another', async () => {
    await mkdir(join(folder, 'vae'));
    await symlink('../vae', join(folder, 'unet/l'));
    await symlink('../unet', join(folder, 'vae/l'));
    expect(await paths(20)).toEqual([
      'unet',
      'vae',
      'unet/l',
      'unet/model.onnx',
      'vae/l',
      ...['unet/l/l', 'vae/l/l', 'vae/l/model.onnx'],
    ]);
  });

  it('ends at the most that a model can have, however many links lead to the same folders', async () => {
    for (let level = 0; level < 8; level++) {
      await mkdir(join(folder, `${level}`));
      for (const name of ['l1', 'l2']) await symlink(`../${level + 1}`, join(folder, `${level}`, name));
    }
    await mkdir(join(folder, '8'));
    await expect(entriesBelow(folder, 100)).rejects.toThrow(
      `${folder} holds more than 100 files and folders. Take out of it what does not belong to the model.`,
    );
  });
});
