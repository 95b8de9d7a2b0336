import { execFile } from 'node:child_process';
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { misconfiguredExitCode } from '@app/process';
import sharp from 'sharp';
import { processesOf, ServiceProcess, untilNobodyIsLeft } from '../support/service-process';
import { until } from '../support/until';

/** Everything in a folder, at any depth, that other users can access. */
function openEntries(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => {
    const status = lstatSync(join(folder, name), { throwIfNoEntry: false });
    return status && !status.isSymbolicLink() && (status.mode & 0o077) !== 0;
  });
}

const commands = resolve(__dirname, '..', '..', 'dist', 'apps', 'cli', 'src');
const demo = join(commands, 'demo.js');

// Some tests start the whole service.
jest.setTimeout(600_000);

describe('npm start', () => {
  let folder: string;
  let dataDir: string;
  const launchers: ServiceProcess[] = [];
  const launch = (env: Record<string, string> = {}): ServiceProcess => {
    const launcher = new ServiceProcess('launcher', { DATA_DIR: dataDir, PORT: '0', ...env });
    launchers.push(launcher);
    return launcher;
  };
  const token = (): string => readFileSync(join(dataDir, 'api-key'), 'utf8').trim();
  const call = async (url: string, path: string, body?: object): Promise<unknown> => {
    const response = await fetch(url + path, {
      headers: { Authorization: `Bearer ${token()}`, 'Content-Type': 'application/json' },
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response.json();
  };
  const isReady = async (url: string): Promise<boolean> =>
    (await fetch(`${url}/health/ready`).catch(() => undefined))?.ok ?? false;

  const makeFolder = (): void => {
    folder = mkdtempSync(join(tmpdir(), 'darkroom-launcher-'));
    chmodSync(folder, 0o711);
    dataDir = join(folder, 'data');
  };
  const removeFolder = async (): Promise<void> => {
    await Promise.all(launchers.splice(0).map((launcher) => launcher.end('SIGKILL')));
    await untilNobodyIsLeft(folder);
    rmSync(folder, { recursive: true });
  };

  describe('runs a service that', () => {
    let launcher: ServiceProcess;
    let url: string;
    const signInCode = (): string => /#code=([\w-]{20,})\n/.exec(launcher.output)?.[1] ?? 'none was printed';

    beforeAll(async () => {
      makeFolder();
      // Nobody looks at these pictures, and this model draws them in a tenth of the time.
      launcher = launch({ MODELS_DIR: process.env.TEST_MODELS_DIR! });
      url = await launcher.listening();
    });
    afterAll(removeFolder);

    it('serves, and keeps its data from other users', async () => {
      await expect(call(url, '/v1/sd/text-to-image')).resolves.toEqual([]);
      expect(statSync(join(dataDir, 'api-key')).mode & 0o777).toBe(0o600);
      expect(launcher.output).toContain(`Bearer $(cat ${join(dataDir, 'api-key')})`);
      expect(launcher.output).not.toContain(token());
      // Root runs PostgreSQL as another user, whose group must be able to pass.
      const expected = process.getuid?.() === 0 ? 0o710 : 0o700;
      expect(statSync(dataDir).mode & 0o777).toBe(expected);
      expect(openEntries(dataDir)).toEqual([]);
    });

    it('signs the first browser in that sends the printed code', async () => {
      const exchange = () =>
        fetch(`${url}/sign-in`, { method: 'POST', headers: { Authorization: `Code ${signInCode()}` } });
      const answer = await exchange();
      expect([answer.status, await answer.json()]).toEqual([200, { api_key: token() }]);
      expect((await exchange()).status).toBe(401);
    });

    it('says so when it is started a second time', async () => {
      const second = launch();
      await expect(second.ended).resolves.toBe(0);
      expect(second.output).toMatch(new RegExp(`^Darkroom is already running at ${url} \\(process \\d+\\)\\.\n$`));
    });

    it('serves npm run demo, which saves the picture', async () => {
      const file = join(folder, 'circle.png');
      const args = ['a red circle on a blue background', '--steps', '2', '--seed', '7', '--out', file];
      const { stdout, stderr } = await promisify(execFile)(process.execPath, [demo, ...args], {
        env: { PATH: process.env.PATH, DATA_DIR: dataDir },
      });
      expect(stdout).toMatch(new RegExp(`^${file}\nDrawn in [\\d.]+ s by shapes@\\w+ with seed 7\\.\n$`));
      expect(stderr).not.toContain('Starting Darkroom');
      await expect(sharp(file).metadata()).resolves.toMatchObject({ format: 'png', width: 512, height: 512 });
    });

    it('signs what it draws with a pair of its own, which npm run verify reads', async () => {
      const verify = (file: string) =>
        promisify(execFile)(process.execPath, [join(commands, 'verify.js'), file], {
          env: { PATH: process.env.PATH, DATA_DIR: dataDir },
        });
      const file = join(folder, 'circle.png');
      const { stdout } = await verify(file);
      const [record] = (await call(url, '/v1/sd/text-to-image')) as { id: string; served_by: string }[];
      expect(stdout.split('\n')).toEqual([
        'It says that it is: trainedAlgorithmicMedia',
        'Its Content Credentials hold: nothing has changed since it was signed.',
        'Signed by: Darkroom (self-made), with a certificate of yours',
        expect.stringMatching(/^ {2}c2pa\.created by shapes \([0-9a-f]+\)$/) as string,
        `Record: ${record.id}, picture 0`,
        '',
      ]);
      const changed = readFileSync(file);
      changed[changed.length - 40] ^= 1;
      writeFileSync(join(folder, 'changed.png'), changed);
      await expect(verify(join(folder, 'changed.png'))).rejects.toMatchObject({
        code: 1,
        stdout: expect.stringContaining('because of: assertion.dataHash.mismatch') as string,
      });
      await expect(verify(join(commands, 'verify.js'))).rejects.toMatchObject({ code: 1 });
    });

    it('draws a sheet of eight pictures for npm run demo without a prompt', async () => {
      const file = join(folder, 'sheet.webp');
      const { stdout } = await promisify(execFile)(process.execPath, [demo, '--steps', '1', '--json', '--out', file], {
        env: { PATH: process.env.PATH, DATA_DIR: dataDir },
      });
      const printed = JSON.parse(stdout) as { file: string; generations: { status: string; steps: number }[] };
      expect(printed).toMatchObject({ file, seconds: expect.any(Number) as number });
      expect(printed.generations).toHaveLength(8);
      for (const one of printed.generations)
        expect(one).toMatchObject({ model: 'shapes', status: 'succeeded', steps: 1 });
      await expect(sharp(file).metadata()).resolves.toMatchObject({ format: 'webp', width: 1048, height: 520 });
    });

    it('is backed up while it runs, and restored elsewhere', async () => {
      const command = (name: string, folderOfData: string, ...args: string[]) =>
        promisify(execFile)(process.execPath, [join(commands, `${name}.js`), ...args], {
          env: { PATH: process.env.PATH, DATA_DIR: folderOfData },
        });
      const [backup, other] = [join(folder, 'backup'), join(folder, 'restored')];
      await expect(command('backup', dataDir, backup)).resolves.toMatchObject({
        stdout: expect.stringMatching(
          new RegExp(`^${backup} has \\d+ rows and \\d+ files \\(.*\\), as of .*Z\\.\n$`),
        ) as string,
      });
      expect([...openEntries(folder).filter((name) => name.startsWith('backup'))]).toEqual([]);
      await promisify(execFile)('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], { cwd: backup });

      const refused = await command('restore', dataDir, backup).catch(
        (error: Error & { stderr: string }) => error.stderr,
      );
      expect(refused).toMatch(/^The data folder .* is not empty: .* Nothing was changed\.\n$/);
      await command('restore', other, backup, '--check');
      const { stdout } = await command('restore', other, backup);
      expect(stdout).toMatch(/^\d+ rows and \d+ files are as they were at .*Z\.\n$/);

      const restored = launch({ DATA_DIR: other, PUBLIC_URL: url });
      const path = '/v1/sd/text-to-image';
      const [before] = (await call(url, path)) as { images: string[]; thumbnail: string }[];
      const [after] = (await call(await restored.listening(), path)) as (typeof before)[];
      expect(after.images).toHaveLength(1);
      const at = new URL(await restored.listening()).port;
      const pathOf = (image: string): string => new URL(image).pathname;
      const paths = ({ images, thumbnail, ...rest }: typeof before) => ({
        ...rest,
        ...{ images: images.map(pathOf), thumbnail: pathOf(thumbnail) },
      });
      expect(paths(after)).toEqual(paths(before));
      const bytes = async (port: string): Promise<Buffer> => {
        const answer = await fetch(`http://127.0.0.1:${port}${pathOf(before.images[0])}`);
        expect(answer.status).toBe(200);
        return Buffer.from(await answer.arrayBuffer());
      };
      expect((await bytes(at)).equals(await bytes(new URL(url).port))).toBe(true);
      // npm passes on the Ctrl-C of a terminal, so it comes twice, and is one all the same.
      process.kill(restored.pid, 'SIGINT');
      await expect(restored.end('SIGINT')).resolves.toBe(0);
      expect(restored.output).not.toContain('at once');
    });

    it('restarts a crashed process', async () => {
      const before = processesOf(folder);
      const killed = before.filter(({ command }) => /^[^\0]*bin\/postgres\0|apps\/(api|inference)\/src/.test(command));
      expect(killed).toHaveLength(3);
      for (const { pid } of killed) process.kill(pid, 'SIGKILL');

      const pids = new Set(killed.map(({ pid }) => pid));
      await until(async () => {
        const now = processesOf(folder);
        return (await isReady(url)) && now.length >= before.length && !now.some(({ pid }) => pids.has(pid));
      }, 'all of it runs again');
      expect(Array.isArray(await call(url, '/v1/sd/text-to-image?limit=1'))).toBe(true);
    });

    it('kills and restarts a hanging process, and says why', async () => {
      const apiPids = (): number[] =>
        processesOf(folder).flatMap(({ pid, command }) => (command.includes('apps/api/src/main') ? [pid] : []));
      const [hanging] = apiPids();
      // The launcher waits for a first answer before it detects hangs.
      await until(async () => {
        const metrics = await (await fetch(`${url}/metrics`)).text();
        const asked = /^darkroom_http_requests_total\{route="\/health\/live",method="\w+",status="200"\} (\d+)/m.exec(
          metrics,
        );
        return Number(asked?.[1] ?? 0) > 1;
      }, 'the launcher asks whether the api lives');
      process.kill(hanging, 'SIGSTOP');
      await until(async () => apiPids().length > 0 && !apiPids().includes(hanging), 'another api runs');
      await until(() => isReady(url), 'it serves');
      expect(Array.isArray(await call(url, '/v1/sd/text-to-image?limit=1'))).toBe(true);
      const sentence = /The api ended \(killed, because it did not answer for 15 s\) and is restarted in \d(\.5)? s\./;
      expect(launcher.output).toMatch(sentence);
      expect(readFileSync(join(dataDir, 'logs', 'api.log'), 'utf8')).toMatch(sentence);
    });

    // The last test, because it ends the service. The restored one is interrupted.
    it('leaves no process behind when it is told to end, and has logged neither the key nor the code', async () => {
      await expect(launcher.end('SIGTERM')).resolves.toBe(0);
      await untilNobodyIsLeft(folder);
      const logs = readdirSync(join(dataDir, 'logs'));
      expect(logs).toEqual(expect.arrayContaining(['api.log', 'inference.log', 'postgres.log']));
      const code = signInCode();
      expect(launcher.output.split(code)).toHaveLength(2);
      expect(launcher.output).not.toContain(token());
      for (const name of logs) {
        const text = readFileSync(join(dataDir, 'logs', name), 'utf8');
        expect([name, text.includes(token()), text.includes(code)]).toEqual([name, false, false]);
      }
    });
  });

  it('recovers all data after everything was killed, and stops leftover processes after only itself was killed', async () => {
    makeFolder();
    try {
      const first = launch();
      const body = { prompt: 'a red circle', steps: 1 };
      const made = (await call(await first.listening(), '/v1/sd/text-to-image', body)) as { id: string };
      for (const { pid } of processesOf(folder)) process.kill(pid, 'SIGKILL');
      await first.ended;

      const second = launch();
      const url = await second.listening();
      expect(second.output).not.toContain(token());
      await expect(call(url, `/v1/sd/text-to-image/${made.id}`)).resolves.toMatchObject({ prompt: 'a red circle' });

      await expect(second.end('SIGKILL')).resolves.toBe('SIGKILL');
      await untilNobodyIsLeft(folder);
    } finally {
      await removeFolder();
    }
  });

  describe('explains in one sentence why it cannot start, and fails', () => {
    beforeEach(makeFolder);
    afterEach(removeFolder);

    const refusal = async (env: Record<string, string>, exitCode = 1): Promise<string> => {
      const launcher = launch(env);
      await expect(launcher.ended).resolves.toBe(exitCode);
      expect(launcher.output.trim().split('\n')).toHaveLength(1);
      return launcher.output;
    };

    it('when the port is busy', async () => {
      const other = createServer().listen(0, '127.0.0.1');
      await once(other, 'listening');
      const { port } = other.address() as AddressInfo;
      await expect(refusal({ PORT: String(port) })).resolves.toContain(`PORT is ${port}`);
      other.close();
      await once(other, 'close');
    });

    it('when the data folder cannot be written', async () => {
      const path = '/proc/darkroom';
      await expect(refusal({ DATA_DIR: path }, misconfiguredExitCode)).resolves.toContain(
        `The data folder ${path} cannot be `,
      );
    });

    it('when no model is installed', async () => {
      const empty = join(folder, 'models');
      mkdirSync(empty);
      await expect(refusal({ MODELS_DIR: empty })).resolves.toContain(`There is no model in ${empty}`);
    });

    it('when the device is not there, at once', async () => {
      const launcher = launch({ DEVICE: 'cuda:99' });
      await expect(launcher.ended).resolves.toBe(misconfiguredExitCode);
      const { output } = launcher;
      expect(output.match(/cuda:99/g)).toHaveLength(1);
      expect(output).toMatch(
        /^inference: The inference process could not start: DEVICE names cuda:99, which cannot be used here: [^\n]+\. docs\/gpu-host\.md says [^\n]+$/m,
      );
      expect(output).toMatch(/^The inference does not start with these settings; its log is .*inference\.log\.$/m);
      expect(output).not.toMatch(/restarted|ONNX Runtime says|onnxruntime/);
      expect(readFileSync(join(dataDir, 'logs', 'inference.log'), 'utf8').match(/cuda:99/g)).toHaveLength(1);
    });

    it('when a variable has a wrong value', async () => {
      const launcher = launch({ DEVICE: 'gpu' });
      const said = expect.stringContaining('DEVICE must be auto, cpu, webgpu or cuda:<n>') as string;
      expect([await launcher.ended, launcher.output]).toEqual([misconfiguredExitCode, said]);
    });

    it('when HOST is not an address of this machine', () =>
      expect(refusal({ HOST: '192.0.2.1' })).resolves.toContain('HOST is "192.0.2.1"'));
  });
});
