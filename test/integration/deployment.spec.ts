import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { JsonLogger } from '@app/observability';
import type { INestApplicationContext } from '@nestjs/common';
import { parse } from 'yaml';
import { createInference } from '../../apps/inference/src/create-inference';
import type { TestApi, TestKey } from '../support/api';
import { startTestApi } from '../support/api';
import { threadFile } from '../support/inference';
import { kubernetesFolder, resourcesOf } from '../support/kustomize';
import { proxies, startProxy } from '../support/proxy';
import { selectorsOf, seriesOf } from '../support/promql';
import type { Receiver } from '../support/receiver';
import { startReceiver } from '../support/receiver';
import { until } from '../support/until';

const docker = resolve(__dirname, '..', '..', 'docker');
const monitoring = join(docker, 'monitoring');
const promtool = spawnSync('promtool', ['--version']).status === 0;
const path = '/v1/sd/text-to-image';

interface Rules {
  groups: { rules: { alert: string; expr: string }[] }[];
}
interface Dashboard {
  panels: { title: string; targets: { expr: string; legendFormat: string }[] }[];
}
const alerts = (parse(readFileSync(join(monitoring, 'alerts.yaml'), 'utf8')) as Rules).groups.flatMap(
  ({ rules }) => rules,
);
const { panels } = JSON.parse(readFileSync(join(monitoring, 'dashboard.json'), 'utf8')) as Dashboard;
const scaled = resourcesOf(join(kubernetesFolder, 'autoscaled')).find(({ kind }) => kind === 'ScaledObject')!;
const { triggers } = scaled.spec as { triggers: { name: string; metadata: { query: string } }[] };

const queries: [string, string][] = [
  ...alerts.map(({ alert, expr }): [string, string] => [`the alert ${alert}`, expr]),
  ...panels.flatMap(({ title, targets }) =>
    targets.map(({ expr }): [string, string] => [`the panel "${title}"`, expr]),
  ),
  ...triggers.map(({ name, metadata }): [string, string] => [`the trigger ${name}`, metadata.query]),
];

describe('Around a running service,', () => {
  let api: TestApi;
  let worker: INestApplicationContext;
  let workerUrl: string;
  let receiver: Receiver;
  let key: TestKey;

  beforeAll(async () => {
    receiver = await startReceiver();
    const settings = {
      INFERENCE_THREADS: '1',
      DEVICE: 'cpu',
      MODELS_DIR: process.env.TEST_MODELS_DIR!,
    };
    api = await startTestApi(settings);
    key = await api.createKey();
    const lines: { msg: string; healthPort?: number }[] = [];
    const logger = new JsonLogger('test', 'info', { write: (line) => void lines.push(JSON.parse(line) as never) });
    worker = await createInference({ config: api.config, databaseUrl: api.config.databaseUrl!, logger, threadFile });
    workerUrl = `http://127.0.0.1:${lines.find(({ msg }) => msg === 'inference is ready')!.healthPort}`;
    const body = { prompt: 'a star', steps: 2, webhook: receiver.url };
    const { body: made } = await api.request<{ id: string }>('POST', path, { key, body });
    await receiver.next(1);
    await api.request('GET', `${path}/${made.id}`, { key });
  });
  afterAll(async () => {
    await worker.close();
    await api.close();
    await receiver.close();
  });

  const metrics = async (): Promise<ReturnType<typeof seriesOf>> => {
    const texts = await Promise.all(
      [api.baseUrl, workerUrl].map(async (url) => (await fetch(`${url}/metrics`)).text()),
    );
    // Prometheus makes this one for each process that it reads.
    return seriesOf([...texts, 'up 1'].join('\n'));
  };

  it('every query reads metrics and labels that the api and the worker print', async () => {
    const counted = (found: ReturnType<typeof seriesOf>) => found.get('darkroom_webhook_tries_total')?.length === 1;
    const series = await until(async () => {
      const found = await metrics();
      return counted(found) && found;
    }, 'the delivery is counted');
    expect(queries.length).toBeGreaterThan(25);
    const wrong = queries.flatMap(([where, query]) =>
      selectorsOf(query).flatMap(({ metric, labels, equal }) => {
        const found = series.get(metric) ?? [];
        if (found.length === 0) return [`${where}: there is no ${metric}`];
        const unknown = labels.filter((label) => !found.some((each) => label in each));
        const valued = found.some((each) => Object.entries(equal).every(([label, value]) => each[label] === value));
        return [
          ...unknown.map((label) => `${where}: ${metric} has no label ${label}`),
          ...(valued || unknown.length > 0 ? [] : [`${where}: no ${metric} has ${JSON.stringify(equal)}`]),
        ];
      }),
    );
    expect(wrong).toEqual([]);
  });

  it('the comparison finds a metric, a label and a value that are not there', async () => {
    const series = await metrics();
    expect(series.has('darkroom_queue_dept')).toBe(false);
    expect(selectorsOf('sum by (colour) (darkroom_queue_depth{queue="x", job="y"})')).toEqual([
      { metric: 'darkroom_queue_depth', labels: ['queue', 'colour'], equal: { queue: 'x' } },
    ]);
    expect(() => selectorsOf('sum(darkroom_queue_depth')).toThrow(/is no query/);
  });

  it("the dashboard's legends name labels that their queries keep, and metrics of the service are not forgotten", async () => {
    for (const { title, targets } of panels)
      for (const { expr, legendFormat } of targets)
        for (const [, label] of legendFormat.matchAll(/\{\{(\w+)\}\}/g))
          expect([title, /\bby \(([^)]*)\)/.exec(expr)?.[1].split(', ') ?? ['job', 'instance']]).toEqual([
            title,
            expect.arrayContaining([label]),
          ]);
    const read = new Set(queries.flatMap(([, query]) => selectorsOf(query).map(({ metric }) => metric)));
    const families = new Set([...(await metrics()).keys()].map((name) => name.replace(/_(bucket|sum|count)$/, '')));
    const unread = [...families].filter(
      (name) => name.startsWith('darkroom_') && ![...read].some((metric) => metric.startsWith(name)),
    );
    expect(unread).toEqual([]);
  });

  it("the probes' paths answer", async () => {
    const probes = resourcesOf(join(kubernetesFolder, 'cpu'))
      .filter(({ kind }) => kind === 'Deployment')
      .flatMap((deployment) =>
        [...JSON.stringify(deployment).matchAll(/"httpGet":\{"path":"([^"]*)","port":"(\w+)"\}/g)].map(
          ([, at, port]) => [at, port],
        ),
      );
    expect(probes).toHaveLength(6);
    for (const [at, port] of probes)
      expect((await fetch(`${port === 'http' ? api.baseUrl : workerUrl}${at}`)).status).toBe(200);
  });

  describe.each(['nginx', 'caddy'] as const)('%s with our example', (name) => {
    const itThere = proxies[name] ? it : it.skip;

    itThere('passes each event on at once, large bodies, and not the metrics', async () => {
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
        expect((await fetch(`${proxy.url}/health/live`)).headers.get('strict-transport-security')).toMatch(/max-age/);
      } finally {
        stop.abort();
        await proxy.stop();
      }
    });
  });
});

describe('docker/monitoring', () => {
  const itWithPromtool = promtool ? it : it.skip;

  itWithPromtool('is accepted by Prometheus, and the alerts fire when they should', () => {
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

  it('has only files that are named in its guide', () => {
    const guide = readFileSync(resolve(docker, '..', 'docs', 'monitoring.md'), 'utf8');
    for (const name of readdirSync(monitoring)) expect(guide).toContain(name);
  });
});
