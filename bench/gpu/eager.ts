import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { type Device, providerOf } from '@app/diffusion';
import type { GpuBench } from './gpu-section';
import type { ModelName } from './models';

/** A kernel of PyTorch's call. */
export interface TorchNode {
  name: string;
  count: number;
  ms: number;
}

interface Requests {
  load: { name: ModelName; tokens: number; compile?: boolean };
  call: { rows: number; pixels: number };
  profile: { rows: number; pixels: number };
}

interface Answers {
  load: { torch: string; diffusers: string };
  call: { ms: number };
  profile: { nodes: TorchNode[] };
}

/** Before a section's end, so that it can say that an answer did not come. */
const spareMs = 3000;

/** A process with diffusers' denoiser of one model. Every error of it begins with `PyTorch`. */
export class TorchSide {
  private readonly lines: AsyncIterator<string>;
  private lastError = '';

  private constructor(
    private readonly child: ChildProcessByStdio<Writable, Readable, Readable>,
    private readonly until: number,
  ) {
    this.lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    createInterface({ input: child.stderr }).on('line', (line) => (this.lastError = line || this.lastError));
    child.on('error', ({ message }) => (this.lastError = message));
    // Whoever asks a process that has ended is told by its missing answer.
    child.stdin.on('error', () => undefined);
  }

  /** Loads PyTorch itself while other things are done. Undefined without an interpreter. */
  static start({ python, size, device, until }: GpuBench): TorchSide | undefined {
    if (python === undefined) return undefined;
    const args = [join(__dirname, 'eager.py'), size, torchDevice(device)];
    return new TorchSide(spawn(python, args, { stdio: ['pipe', 'pipe', 'pipe'] }), until - spareMs);
  }

  /** @throws Error if it refuses, has ended, or does not answer before the section ends */
  async ask<Do extends keyof Requests>(what: Do, request: Requests[Do]): Promise<Answers[Do]> {
    this.child.stdin.write(`${JSON.stringify({ do: what, ...request })}\n`);
    const late = setTimeout(() => {
      this.lastError = 'it did not answer in the time of this section';
      this.close();
    }, this.until - Date.now());
    const { value, done } = (await this.lines.next()) as IteratorResult<string, undefined>;
    clearTimeout(late);
    if (done) throw new Error(`PyTorch’s process has ended: ${this.lastError}`);
    const answer = JSON.parse(value) as Answers[Do] | { error: string };
    if ('error' in answer) throw new Error(`PyTorch: ${answer.error}`);
    return answer;
  }

  close(): void {
    this.child.kill('SIGKILL');
  }
}

const torchDevice = (device: Device): string => (providerOf(device) === 'cuda' ? device : 'cpu');
