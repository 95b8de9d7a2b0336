import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { endOfCertificate } from '@app/credentials';
import { JsonLogger } from '@app/observability';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { createInference } from '../../apps/inference/src/create-inference';
import { dependentVariables, s3Variables, variables } from '../../libs/config/src/variables';
import { startTestApi } from '../support/api';
import { writePair } from '../support/certificates';
import { freePort } from '../support/free-port';
import { threadFile } from '../support/inference';
import { proxies, startProxy } from '../support/proxy';
import { startReceiver } from '../support/receiver';
import { until } from '../support/until';

const root = resolve(__dirname, '..', '..');
const baseImage = 'debian:bookworm-slim';
const docker = join(root, 'docker');
const monitoring = join(docker, 'monitoring');
const path = '/v1/sd/text-to-image';
const runs = (program: string, ...args: string[]) => spawnSync(program, args).status === 0;
const filesOf = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => /\.\w+$/.test(name));
const read = (name: string): string => readFileSync(join(docker, name), 'utf8');
const files = filesOf(docker);
/** Of the programs around the service, not of its own configuration; END ends a file in a command. */
const foreign =
  /^(END|NODE_ENV|POSTGRES_\w+|MINIO_\w+|NVIDIA_\w+|PGPASSWORD|PATH|DARKROOM_(TAG|PORT|MODELS|DATA|IMAGE)\w*)$/;
const settings = new Set(
  [variables, dependentVariables, s3Variables].flatMap((table) =>
    Object.values(table).map(([name]: readonly unknown[]) => name),
  ),
);

describe('The files for a deployment', () => {
  it.each(files.filter((name) => name.endsWith('.yaml')))('docker/%s is YAML', (name) => {
    expect(parseAllDocuments(read(name)).flatMap(({ errors }) => errors)).toEqual([]);
  });

  it('set only variables that the service knows', () => {
    const named = [
      ...['compose.yaml', ...files.filter((name) => name.startsWith('kubernetes/'))].flatMap((name) => [
        ...read(name).matchAll(/^ +(?:- )?(?:name: )?([A-Z][A-Z0-9_]+)(?:[:=].*)?$/gm),
      ]),
      ...files
        .filter((name) => /\.(Dockerfile|service)$/.test(name))
        .flatMap((name) =>
          [...read(name).matchAll(/^(?:ENV |Environment=)((?:.*\\\n)*.*)/gm)].flatMap(([, set]) => [
            ...set.matchAll(/\b([A-Z][A-Z0-9_]+)=/g),
          ]),
        ),
    ].map(([, name]) => name);
    expect(named.length).toBeGreaterThan(20);
    expect([...new Set(named)].filter((name) => !settings.has(name) && !foreign.test(name))).toEqual([]);
  });

  it('name images by the version of the source', () => {
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
    const named = ['compose.yaml', 'compose.gpu.yaml', 'kubernetes/README.md'].map((name) => [
      ...read(name).matchAll(/(?:\bDARKROOM_VERSION:-|\bnewTag: '?|\/darkroom-[a-z-]+:)([\w.-]+)/g),
    ]);
    for (const tags of named) expect([...new Set(tags.map(([, tag]) => tag))]).toEqual([version]);
  });

  it('name only files and programs that are there', () => {
    const missing = files.flatMap((name) => {
      const programs = [...read(name).matchAll(/dist\/((?:apps|scripts)\/[\w/-]+)\.js/g)].map(
        ([, main]) => `${main}.ts`,
      );
      const copied = [...read(name).matchAll(/^COPY (?!--from)(?:--chown=\S+ )?(.+)$/gm)].flatMap(([, sources]) =>
        sources.split(/\s+/),
      );
      return [...programs, ...copied].filter((source) => !existsSync(join(root, source)));
    });
    expect(missing).toEqual([]);
  });

  (runs('systemd-analyze', '--version') ? it : it.skip)('are units that systemd accepts', () => {
    const units = files.filter((name) => name.startsWith('systemd/')).map((name) => join(docker, name));
    const { stdout, stderr, status } = spawnSync('systemd-analyze', ['verify', ...units], { encoding: 'utf8' });
    expect([status, stdout + stderr]).toEqual([0, '']);
  });

  it('have an alert for each rule in their tests, that fires', () => {
    const names = [...read('monitoring/alerts.yaml').matchAll(/- alert: (\w+)/g)].map(([, name]) => name);
    const fired = [
      ...read('monitoring/alerts.test.yaml').matchAll(/alertname: (\w+)\n\s+exp_alerts:\n\s+- exp_labels/g),
    ];
    expect(names.length).toBeGreaterThan(8);
    expect(names.filter((name) => !fired.some(([, each]) => each === name))).toEqual([]);
  });

  it('have for each alert an address that leads to what to do', () => {
    const page = readFileSync(join(root, 'docs', 'monitoring.md'), 'utf8');
    const rules = parseAllDocuments(read('monitoring/alerts.yaml'))[0].toJS() as {
      groups: { rules: { alert: string; annotations: { runbook_url: string } }[] }[];
    };
    const alerts = rules.groups.flatMap((group) => group.rules);
    for (const { alert, annotations } of alerts)
      expect(annotations.runbook_url).toBe(`https://pictures.example.com/docs/monitoring#${alert.toLowerCase()}`);
    const headings = [...page.matchAll(/^### (Darkroom\w+)$/gm)].map(([, name]) => name);
    expect(headings).toEqual(alerts.map(({ alert }) => alert));
  });

  (runs('systemd-analyze', '--version') ? it : it.skip)(
    'are units with few rights: exposure of at most 2 of 10',
    () => {
      for (const name of files.filter((file) => file.endsWith('.service'))) {
        const unit = join(docker, name);
        const args = ['security', '--offline=true', '--no-pager', '--threshold=20', unit];
        expect([name, spawnSync('systemd-analyze', args).status]).toEqual([name, 0]);
      }
    },
  );

  (runs('kubectl', '--help') ? it : it.skip)('are overlays that Kustomize accepts', () => {
    for (const overlay of ['base', 'cpu', 'gpu', 'autoscaled'])
      expect(spawnSync('kubectl', ['kustomize', join(docker, 'kubernetes', overlay)]).status).toBe(0);
    // The overlay of the manifests' page, with all components and with what the page adds to it.
    const place = mkdtempSync(join(tmpdir(), 'darkroom-kubernetes-'));
    cpSync(join(docker, 'kubernetes'), place, { recursive: true });
    const blocks = [...read('kubernetes/README.md').matchAll(/^( +)```yaml\n([^`]+)```/gm)].map(([, indent, block]) =>
      block.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
    );
    const [mine, ...parts] = blocks.map((block) => parse(block) as Record<string, unknown[]>);
    const objects = parts.filter((part) => 'kind' in part);
    const additions = parts.filter((part) => !('kind' in part));
    expect(additions.map((addition) => Object.keys(addition))).toEqual([
      ['replicas'],
      ['patches'],
      ['configMapGenerator', 'patches'],
    ]);
    for (const [name, list] of additions.flatMap((addition) => Object.entries(addition)))
      mine[name] = [...(mine[name] ?? []), ...list];
    mine.components = ['../monitoring', '../backup'];
    mkdirSync(join(place, 'mine'));
    writeFileSync(join(place, 'mine', 'ca.crt'), 'a certificate');
    mine.resources.push(...objects.map((_, index) => `object-${index}.yaml`));
    for (const [index, object] of objects.entries())
      writeFileSync(join(place, 'mine', `object-${index}.yaml`), stringify(object));
    writeFileSync(join(place, 'mine', 'kustomization.yaml'), stringify(mine));
    const { status, stdout, stderr } = spawnSync('kubectl', ['kustomize', join(place, 'mine')], { encoding: 'utf8' });
    rmSync(place, { recursive: true });
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout.match(/image: registry\.example\.com\/darkroom-api:/g)).toHaveLength(3);
    expect(stdout.match(/name: darkroom-[0-9a-z]{10}$/gm)!.length).toBeGreaterThan(3);
    for (const kind of ['PodMonitor', 'Ingress']) expect(stdout).toContain(`kind: ${kind}`);
    expect(stdout.match(/^ +name: darkroom-ca-[0-9a-z]{10}$/gm)).toHaveLength(3);
    expect(stdout).toContain('kubernetes.io/metadata.name: minio');
  });

  (runs('promtool', '--version') ? it : it.skip)('are rules that Prometheus accepts, and fire when they should', () => {
    const place = mkdtempSync(join(tmpdir(), 'darkroom-monitoring-'));
    cpSync(monitoring, place, { recursive: true });
    const [file, tokenFile] = [join(place, 'prometheus.yaml'), join(place, 'token')];
    writeFileSync(tokenFile, 'a token');
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll('/etc/prometheus/darkroom-token', tokenFile));
    const run = (...args: string[]) => spawnSync('promtool', args, { cwd: place, encoding: 'utf8' });
    const outcomes = [run('check', 'config', 'prometheus.yaml'), run('test', 'rules', 'alerts.test.yaml')];
    rmSync(place, { recursive: true });
    expect(outcomes.map(({ status, stdout, stderr }) => [status, status === 0 ? '' : stdout + stderr])).toEqual([
      [0, ''],
      [0, ''],
    ]);
  });

  // Some machines have an engine that starts no container, or a network without the base images.
  (['docker', 'podman'].some((program) => runs(program, 'run', '--rm', '--network=none', baseImage, 'true'))
    ? it
    : it.skip)(
    'build images that run without rights on a file system that they cannot change',
    () => {
      const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/images.mjs'], { encoding: 'utf8' });
      expect([status, status === 0 ? '' : stdout + stderr]).toEqual([0, '']);
      expect(stdout.match(/ runs as user 1000, on a read-only file system;/g)).toHaveLength(2);
    },
    1_800_000,
  );
});

/** Name, type, labels and processes of each of our metrics, as the api and the worker print them. */
function described(texts: string[]): string[][] {
  const ofName = new Map<string, string[]>();
  for (const [at, text] of texts.entries()) {
    const lines = text.split('\n');
    for (const line of lines.filter((each) => each.startsWith('# TYPE darkroom_'))) {
      const [name, type] = line.split(' ').slice(2);
      const sample = lines.find((each) => each.startsWith(`${name}{`) || each.startsWith(`${name}_count{`)) ?? '';
      const labels = [...sample.matchAll(/[{,](\w+)="/g)].map(([, label]) => label).join();
      const processes = [ofName.get(name)?.[3] ?? [], at === 0 ? 'api' : 'worker'].flat().join();
      ofName.set(name, [name, type, labels, processes]);
    }
  }
  return [...ofName.values()];
}

describe('Around a running service', () => {
  it('every metric that the dashboard, the alerts and the autoscaler read is printed, and every one of ours is read', async () => {
    const receiver = await startReceiver();
    const pair = await writePair(mkdtempSync(join(tmpdir(), 'darkroom-credentials-')), 'ours');
    const api = await startTestApi({
      ...{ INFERENCE_THREADS: '1', DEVICE: 'cpu', MODELS_DIR: process.env.TEST_MODELS_DIR! },
      ...{ CREDENTIALS_CERTIFICATE: pair.certificate, CREDENTIALS_KEY: pair.key },
    });
    const lines: { msg: string; healthPort?: number }[] = [];
    const logger = new JsonLogger('test', 'info', { write: (line) => void lines.push(JSON.parse(line) as never) });
    const worker = await createInference({
      config: api.config,
      databaseUrl: api.config.databaseUrl!,
      logger,
      threadFile,
    });
    const workerUrl = `http://127.0.0.1:${lines.find(({ msg }) => msg === 'inference is ready')!.healthPort}`;
    try {
      const key = await api.createKey();
      await api.request('POST', path, { key, body: { prompt: 'a star', steps: 2, webhook: receiver.url } });
      await receiver.next(1);
      const texts = () =>
        Promise.all([api.baseUrl, workerUrl].map(async (url) => (await fetch(`${url}/metrics`)).text()));
      const text = await until(async () => {
        const all = (await texts()).join('\n');
        return all.includes('darkroom_webhook_tries_total{') && all;
      }, 'the delivery is counted');
      const end = Number(/^darkroom_credentials_expiration_timestamp_seconds (\S+)$/m.exec(text)?.[1]);
      expect(new Date(end * 1000)).toEqual(await endOfCertificate(pair.certificate));
      const printed = new Set([...text.matchAll(/^(\w+)(?:\{.*\})? \S+$/gm)].map(([, name]) => name));
      const queries = [
        'monitoring/alerts.yaml',
        'monitoring/dashboard.json',
        'kubernetes/autoscaled/scaled-object.yaml',
      ].map(read);
      const readMetrics = new Set(queries.flatMap((query) => query.match(/\bdarkroom_\w+/g) ?? []));
      expect([...readMetrics].filter((name) => !printed.has(name))).toEqual([]);
      const families = new Set([...printed].map((name) => name.replace(/_(bucket|sum|count)$/, '')));
      const unread = [...families].filter(
        (name) => name.startsWith('darkroom_') && ![...readMetrics].some((metric) => metric.startsWith(name)),
      );
      expect(unread).toEqual([]);
      const page = readFileSync(join(root, 'docs', 'monitoring.md'), 'utf8');
      const rows = page.split('\n').filter((line) => line.startsWith('| `darkroom_'));
      const told = rows.map((line) => line.replaceAll(/[`\s]/g, '').split('|').slice(1, 5));
      expect(told.sort()).toEqual(described(await texts()).sort());
      const probes = new Set(
        [...read('kubernetes/cpu/inference.yaml').matchAll(/path: (\/health\/\w+)/g)].map(([, at]) => at),
      );
      for (const at of probes) expect([at, (await fetch(`${workerUrl}${at}`)).status]).toEqual([at, 200]);
    } finally {
      await worker.close();
      await api.close();
      await receiver.close();
    }
  });

  describe.each(['nginx', 'caddy'] as const)('%s with our example', (name) => {
    (proxies[name] ? it : it.skip)('passes each event on at once, large bodies, and not the metrics', async () => {
      const api = await startTestApi({ PUBLIC_URL: 'https://pictures.example.com' });
      const proxy = await startProxy(name, api.baseUrl);
      const stop = new AbortController();
      try {
        // Its task waits for a minute, and so its stream stays open.
        const sandbox = await api.createKey({ sandbox: true });
        const headers = { authorization: `Bearer ${sandbox.token}`, 'content-type': 'application/json' };
        const body = JSON.stringify({ prompt: 'a ring', metadata: { sandbox: { delay_ms: 60_000 } } });
        const made = (await (await fetch(proxy.url + path, { method: 'POST', headers, body })).json()) as {
          id: string;
        };
        const stream = await fetch(`${proxy.url}${path}/${made.id}/events`, { headers, signal: stop.signal });
        expect(stream.headers.get('content-type')).toMatch(/^text\/event-stream/);
        const reader = stream.body!.getReader() as ReadableStreamDefaultReader<Uint8Array>;
        const first = await reader.read();
        expect(Buffer.from(first.value ?? []).toString()).toMatch(/^(event|id|retry|data|:)/m);
        const large = JSON.stringify({ prompt: 'x'.repeat(3 * 2 ** 20) });
        const refused = await fetch(proxy.url + path, { method: 'POST', headers, body: large });
        expect(refused.headers.get('content-type')).toMatch(/^application\/problem\+json/);
        expect((await fetch(`${proxy.url}/metrics`)).status).toBe(404);
        // Two headers would be read as one with a comma.
        expect((await fetch(`${proxy.url}/health/live`)).headers.get('strict-transport-security')).toBe(
          'max-age=31536000',
        );
      } finally {
        stop.abort();
        await proxy.stop();
        await api.close();
      }
    });
  });
});

describe('health-check', () => {
  let place: string;
  let server: ChildProcess;
  let port: string;

  beforeEach(async () => {
    place = mkdtempSync(join(tmpdir(), 'darkroom-health-'));
    const main = join(place, 'main.js');
    writeFileSync(
      main,
      `require('http').createServer((_, r) => r.end()).listen(0, '127.0.0.1', function () { console.log(this.address().port); });`,
    );
    server = spawn('node', [main], { stdio: ['ignore', 'pipe', 'inherit'] });
    port = String((await once(server.stdout!, 'data'))[0]).trim();
  });

  afterEach(() => {
    server.kill('SIGKILL');
    rmSync(place, { recursive: true });
  });

  const program = join(root, 'dist/apps/cli/src/health-check.js');
  const check = (asked = port): number | null =>
    spawnSync(process.execPath, [program, join(place, 'main.js'), 'PORT'], { env: { PORT: asked, TMPDIR: place } })
      .status;
  /**
   * A check that gets no answer, at a port where nothing listens: one of the stopped program would wait for its time
   * limit.
   */
  const checkSilent = async (): Promise<number | null> => check(String(await freePort()));
  const remember = (ago: { askedMs: number; silentMs?: number }): void =>
    writeFileSync(
      join(place, 'darkroom-health.json'),
      JSON.stringify({
        pid: server.pid,
        askedAt: Date.now() - ago.askedMs,
        ...(ago.silentMs && { silentSince: Date.now() - ago.silentMs }),
      }),
    );

  it('succeeds while the program answers', () => {
    expect(check()).toBe(0);
  });

  it('kills a program that has been silent for 15 seconds, and not before', async () => {
    expect(check()).toBe(0);
    server.kill('SIGSTOP');
    remember({ askedMs: 10_000 });
    expect(await checkSilent()).toBe(1);
    expect(readFileSync(`/proc/${server.pid}/stat`, 'utf8')).toMatch(/ T /);
    remember({ askedMs: 5_000, silentMs: 15_000 });
    const ended = once(server, 'exit');
    expect(await checkSilent()).toBe(1);
    await expect(ended).resolves.toEqual([null, 'SIGKILL']);
  });

  it('leaves a starting program alone, and one that was silent while the machine slept', async () => {
    server.kill('SIGSTOP');
    expect(await checkSilent()).toBe(1);
    remember({ askedMs: 3_600_000, silentMs: 3_600_000 });
    expect(await checkSilent()).toBe(1);
    server.kill('SIGCONT');
    expect(check()).toBe(0);
  });
});
