import type { Stats } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type Config, CONFIG } from '@app/config';
import { highResolutionLongEdge } from '@app/domain';
import { hashFile, shortHash, upscalersFolder } from '@app/model-store';
import { Inject, Injectable } from '@nestjs/common';
import type { UpscalerSource } from '../engine/engine-protocol';

/** The name of the enlargement without a model. */
export const plainUpscaler = 'lanczos';

/** An installed upscaler, and how a record names it. */
export interface InstalledUpscaler {
  source: UpscalerSource;
  /** `<name>@<hash>` */
  label: string;
}

/**
 * Finds the installed upscaler, `upscalers/<name>.onnx` in the models folder; the first by name if there are several.
 * Entries that are no files are passed over: to read a pipe would wait for a writer that may never come.
 */
@Injectable()
export class Upscalers {
  private known?: { fingerprint: string; upscaler: Promise<InstalledUpscaler> };

  constructor(@Inject(CONFIG) private readonly config: Pick<Config, 'modelsDir'>) {}

  async find(): Promise<InstalledUpscaler | undefined> {
    const folder = join(this.config.modelsDir, upscalersFolder);
    const names = await readdir(folder).catch(() => []);
    for (const name of names.filter((entry) => /^[\w.-]{1,100}\.onnx$/.test(entry)).sort()) {
      const file = join(folder, name);
      const stats = await stat(file);
      if (stats.isFile()) return this.read(file, name, stats);
    }
    return undefined;
  }

  /** Reads a file once for as long as it does not change. */
  private read(file: string, name: string, { size, mtimeMs }: Stats): Promise<InstalledUpscaler> {
    const fingerprint = `${file} ${size} ${mtimeMs}`;
    if (this.known?.fingerprint !== fingerprint) {
      const known = (this.known = { fingerprint, upscaler: upscalerIn(file, name) });
      known.upscaler.catch(() => {
        if (this.known === known) this.known = undefined;
      });
    }
    return this.known.upscaler;
  }
}

/** Reads the whole file, for its hash. */
async function upscalerIn(file: string, name: string): Promise<InstalledUpscaler> {
  const label = `${name.slice(0, -'.onnx'.length)}@${shortHash(await hashFile(file))}`;
  return { source: { key: `upscaler ${label}`, name, file, maxLongEdge: highResolutionLongEdge }, label };
}
