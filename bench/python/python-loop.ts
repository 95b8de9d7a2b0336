import { spawn } from 'node:child_process';
import type { ChildProcessByStdio } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';

/** Time of one run of the denoising loop, and the part of it inside ONNX Runtime. */
export interface LoopTime {
  loopMs: number;
  runMs: number;
}

export interface LoopRequest {
  /** Token ids of the negative prompt and the prompt, one row each. */
  inputIds: readonly (readonly number[])[];
  batch: number;
  steps: number;
  guidanceScale: number;
  /** Edge length of the latents. */
  size: number;
}

/** `bench/python/pipeline.py` as a child process that runs one loop for each line it receives. */
export class PythonLoop {
  private constructor(
    private readonly child: ChildProcessByStdio<Writable, Readable, null>,
    private readonly lines: AsyncIterator<string>,
  ) {}

  /**
   * @param python path of an interpreter that has onnxruntime, torch and diffusers
   * @throws Error if it ends before its model is loaded
   */
  static async start(python: string, model: string, threads: number): Promise<PythonLoop> {
    // Resolved from the repository's root, because the compiled bench is in another folder than the script.
    const script = join(process.cwd(), 'bench/python/pipeline.py');
    const child = spawn(python, [script, model, String(threads)], { stdio: ['pipe', 'pipe', 'inherit'] });
    const failed = new Promise<never>((_, reject) => child.once('error', reject));
    const loop = new PythonLoop(child, createInterface({ input: child.stdout })[Symbol.asyncIterator]());
    await Promise.race([loop.read(), failed]);
    return loop;
  }

  async run(request: LoopRequest): Promise<LoopTime> {
    this.child.stdin.write(`${JSON.stringify(request)}\n`);
    return JSON.parse(await this.read()) as LoopTime;
  }

  stop(): void {
    this.child.stdin.end();
  }

  private async read(): Promise<string> {
    const line = await this.lines.next();
    if (line.done) throw new Error('The Python side ended early; what it wrote above says why.');
    return line.value;
  }
}
