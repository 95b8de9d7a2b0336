import { execFile, type ExecFileException } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { executionProviders, identityModel, InferenceSession, providerOf } from '@app/diffusion';
import { env } from '../../../libs/diffusion/src/sessions/onnx-runtime';
import type { GpuSection } from '../gpu-section';

const run = promisify(execFile);

/** The first line that a program prints, or why it does not. */
const said = (program: string, args: readonly string[]): Promise<string> =>
  run(program, args, { timeout: 15_000, killSignal: 'SIGKILL' }).then(
    ({ stdout }) => stdout.trim().split('\n')[0],
    (error: ExecFileException) =>
      `nothing (${error.killed ? 'not within 15 s' : error.code === 'ENOENT' ? 'not there' : error.message.trim().split('\n').at(-1)})`,
  );

/** Libraries that ONNX Runtime's provider needs and the linker does not find: the runtime itself does not say. */
async function missingLibraries(): Promise<string[]> {
  const folder = join(require.resolve('onnxruntime-node'), '../../bin/napi-v6', process.platform, process.arch);
  const provider = join(folder, 'libonnxruntime_providers_cuda.so');
  if (!existsSync(provider)) return [provider];
  const { stdout } = await run('ldd', [provider]).catch(() => ({ stdout: '' }));
  const linked = stdout.split('\n').flatMap((line) => (line.includes('not found') ? line.trim().split(' ')[0] : []));
  const opened = ['libcudnn.so.9', `libcufft.so.${stdout.includes('libcublas.so.13') ? 12 : 11}`];
  return [...linked, ...opened.filter((name) => !isFound(name))];
}

/** Of a library that the provider opens when it needs it. Node opens it too, and then says that it is no module. */
function isFound(library: string): boolean {
  try {
    process.dlopen({ exports: {} }, library);
  } catch (error) {
    return !(error as Error).message.includes('cannot open shared object file');
  }
  return true;
}

export const environment: GpuSection = {
  name: 'environment',
  title: 'Environment',
  about: 'What is measured on, and the libraries of CUDA that are loaded.',
  seconds: 35,
  needsNoModels: true,
  isRequired: true,
  async measure({ device, python, tell }) {
    const fields = 'name,driver_version,memory.total,memory.used,clocks.sm,power.limit';
    tell(`nvidia-smi: ${await said('nvidia-smi', [`--query-gpu=${fields}`, '--format=csv,noheader'])}`);
    tell(`${cpus()[0].model.trim()}, ${cpus().length} cores, ${(totalmem() / 2 ** 30).toFixed(0)} GiB of memory`);
    tell(`Node ${process.versions.node}, onnxruntime-node ${env.versions.node ?? env.versions.common}`);
    if (providerOf(device) === 'cuda') for (const name of await missingLibraries()) tell(`**Not found**: ${name}`);
    const session = await InferenceSession.create(identityModel(), { executionProviders: executionProviders(device) });
    tell(`A session on ${device} opens.`);
    const maps = process.platform === 'linux' ? readFileSync('/proc/self/maps', 'utf8') : '';
    const paths = maps.split('\n').map((line) => line.split(' ').at(-1)!);
    const libraries = paths.filter((path) => /^lib(?:cu|nvrtc)/.test(basename(path)));
    for (const path of new Set(libraries)) tell(`\`${path}\``);
    await session.release();
    if (python !== undefined) {
      const versions =
        'import torch, diffusers; print("torch", torch.__version__, "CUDA", torch.version.cuda, "cuDNN", torch.backends.cudnn.version(), "diffusers", diffusers.__version__)';
      tell(`${basename(python)}: ${await said(python, ['-c', versions])}`);
    }
  },
};
