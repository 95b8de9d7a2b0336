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
  load: { name: ModelName; compile?: boolean };
  call: { rows: number; pixels: number };
  profile: { rows: number; pixels: number };
}

interface Answers {
  load: { torch: string; diffusers: string };
  call: { ms: number };
  profile: { nodes: TorchNode[] };
}

/** A process with diffusers' denoiser of one model. */
export class TorchSide {
  private readonly lines: AsyncIterator<string>;
  private lastError = '';

  private constructor(private readonly child: ChildProcessByStdio<Writable, Readable, Readable>) {
    this.lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    createInterface({ input: child.stderr }).on('line', (line) => (this.lastError = line || this.lastError));
    // Whoever asks a process that has ended is told by its missing answer.
    child.stdin.on('error', () => undefined);
  }

  /** Undefined without an interpreter, and where it cannot load the model, which is told. */
  static async load(
    { python, size, device, tell }: Pick<GpuBench, 'python' | 'size' | 'device' | 'tell'>,
    request: Requests['load'],
  ): Promise<TorchSide | undefined> {
    if (python === undefined) return undefined;
    const side = new TorchSide(
      spawn(python, [join(__dirname, 'eager.py'), size, torchDevice(device)], { stdio: ['pipe', 'pipe', 'pipe'] }),
    );
    side.child.on('error', ({ message }) => (side.lastError = message));
    try {
      await side.ask('load', request);
      return side;
    } catch (error) {
      tell(`PyTorch cannot take part: ${(error as Error).message}`);
      side.close();
      return undefined;
    }
  }

  async ask<Do extends keyof Requests>(what: Do, request: Requests[Do]): Promise<Answers[Do]> {
    this.child.stdin.write(`${JSON.stringify({ do: what, ...request })}\n`);
    const { value, done } = (await this.lines.next()) as IteratorResult<string, undefined>;
    if (done) throw new Error(`the process ended: ${this.lastError}`);
    const answer = JSON.parse(value) as Answers[Do] | { error: string };
    if ('error' in answer) throw new Error(answer.error);
    return answer;
  }

  close(): void {
    this.child.kill();
  }
}

const torchDevice = (device: Device): string => (providerOf(device) === 'cuda' ? device : 'cpu');
