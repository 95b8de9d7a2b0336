import { constants } from 'node:fs';
import { copyFile, link, mkdir, realpath, writeFile } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import { encodeGraph, type Graph } from './graph';

/**
 * Writes a graph as `<folder>/<name>.onnx`. Its weights stay in their files, which get a second name in the folder (a
 * hard link): ONNX Runtime reads none that lie elsewhere, nor behind a symbolic link. Where a link is impossible, as
 * between devices, they are copied.
 * @returns path of the graph
 */
export async function writeGraph(graph: Graph, folder: string, name: string): Promise<string> {
  await mkdir(folder, { recursive: true });
  const files = [...graph.initializers.values()].flatMap((one) => ('file' in one ? [one.file] : []));
  const locations = new Map<string, string>();
  for (const [i, file] of [...new Set(files)].entries()) {
    const source = await realpath(file);
    const isBeside = dirname(source) === (await realpath(folder));
    const location = isBeside ? basename(source) : `${name}.${i}${extname(source)}`;
    locations.set(file, location);
    if (!isBeside) await place(source, join(folder, location));
  }
  const path = join(folder, `${name}.onnx`);
  await writeFile(path, encodeGraph(graph, locations));
  return path;
}

async function place(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return;
    if (!['EXDEV', 'EPERM', 'EACCES', 'EMLINK', 'ENOTSUP'].includes(code)) throw error;
    await copyFile(from, to, constants.COPYFILE_FICLONE);
  }
}
