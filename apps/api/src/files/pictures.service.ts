import { join } from 'node:path';
import type { ImageTask } from '@app/domain';
import { highResolutionLongEdge, sizeOf } from '@app/domain';
import { JsonLogger } from '@app/observability';
import { FairTurns } from '@app/process';
import type { OnApplicationShutdown } from '@nestjs/common';
import { Injectable } from '@nestjs/common';
import { WorkProcess } from '../http/work-process';
import type { SandboxPictureOrder, Size } from './picture-order';
import { RecentFiles } from './recent-files';

/** Letters per line of the prompt, and number of lines. */
const lineLength = 20;
const maxLines = 4;

/** The largest picture takes a second, and many seconds on a busy machine. */
const timeMs = 120_000;
const heapMb = 64;
/** A picture of 4096 x 4096 takes 50 MB as pixels, and several copies exist during its processing. */
const residentMb = 768;
const recentBytes = 32 * 2 ** 20;

const kinds = {
  png: { contentType: 'image/png', extension: 'png' },
  jpeg: { contentType: 'image/jpeg', extension: 'jpg' },
  webp: { contentType: 'image/webp', extension: 'webp' },
} as const;

/** A finished picture, and the data for its row. */
export interface SandboxPicture {
  file: Uint8Array;
  contentType: string;
  extension: string;
  width: number;
  height: number;
}

/**
 * Draws, decodes and encodes pictures in one child process, for which no request waits. Keys take turns, one picture at
 * a time, and recent results are cached.
 */
@Injectable()
export class PicturesService implements OnApplicationShutdown {
  /** Compiled entry of the process; tests name the one in `dist`. */
  static childFile = join(__dirname, 'picture-child.js');

  private readonly turns = new FairTurns({ perKey: 100, total: 1000 });
  private readonly recent = new RecentFiles(recentBytes);
  private readonly process: WorkProcess<SandboxPictureOrder, Uint8Array>;

  constructor(logger: JsonLogger) {
    this.process = new WorkProcess({
      name: 'picture',
      file: PicturesService.childFile,
      timeMs,
      heapMb,
      residentMb,
      onDeath: (reason) => logger.warn('the picture process ended and is restarted when needed', { reason }),
    });
  }

  /** Id of the process, while there is one. */
  get pid(): number | undefined {
    return this.process.pid;
  }

  onApplicationShutdown(): void {
    this.process.close();
  }

  /** A marked picture of the right size and format; its color depends on the seed. */
  async drawSandbox(
    task: Pick<ImageTask, 'ownerId' | 'prompt' | 'aspectRatio' | 'highResolution' | 'outputFormat'>,
    seed: number,
  ): Promise<SandboxPicture> {
    const base = sizeOf[task.aspectRatio];
    const size = task.highResolution ? enlarged(base) : base;
    const format = task.outputFormat;
    const lines = linesOf(task.prompt);
    const hue = (seed * 137) % 360;
    const order = { lines, hue, base: { ...base }, size, format };
    const file = await this.make(task.ownerId, JSON.stringify(order), order);
    return { file, ...kinds[format], ...size };
  }

  private async make(ownerId: string, name: string, order: SandboxPictureOrder): Promise<Uint8Array> {
    const kept = this.recent.get(name);
    if (kept) return kept;
    return this.turns.run(ownerId, async () => {
      // Another request may have made the same one meanwhile.
      const made = this.recent.get(name);
      if (made) return made;
      const file = await this.process.run(order);
      this.recent.set(name, file);
      return file;
    });
  }
}

function enlarged({ width, height }: Size): Size {
  const scale = highResolutionLongEdge / Math.max(width, height);
  return { width: Math.round(width * scale), height: Math.round(height * scale) };
}

/** The first words, in lines; any other characters become spaces. */
function linesOf(prompt: string): string[] {
  const lines: string[] = [];
  for (const word of prompt.match(/[\p{L}\p{N}]+/gu) ?? []) {
    const cut = [...word].slice(0, lineLength).join('');
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + cut.length <= lineLength) lines[lines.length - 1] = `${last} ${cut}`;
    else lines.push(cut);
    if (lines.length > maxLines) break;
  }
  return lines.slice(0, maxLines);
}
