import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { loadConfig } from '@app/config';
import { ScaledObject } from '@kubernetes-models/keda/keda.sh/v1alpha1/ScaledObject';
import { parseAllDocuments } from 'yaml';
import { dependentVariables, s3Variables, variables } from '../../libs/config/src/variables';
import type { Manifest } from '../support/kustomize';
import { kubernetesFolder, resourcesOf } from '../support/kustomize';

interface Container {
  name: string;
  image: string;
  command?: string[];
  ports?: { name: string; containerPort: number }[];
  env?: { name: string; value: string }[];
  securityContext: object;
  volumeMounts: { name: string; mountPath: string }[];
  readinessProbe?: { httpGet: { port: string } };
}
interface PodSpec {
  containers: Container[];
  volumes: { name: string }[];
  securityContext: object;
  terminationGracePeriodSeconds?: number;
}
interface Workload {
  selector?: { matchLabels: Record<string, string> };
  template: { metadata: { labels: Record<string, string> }; spec: PodSpec };
}

const root = resolve(__dirname, '..', '..');
const names = (table: object): string[] => Object.values(table).map(([name]: [string]) => name);
const settings = new Set([...names(variables), ...names(dependentVariables), ...names(s3Variables)]);
const overlays = readdirSync(kubernetesFolder).filter((name) =>
  existsSync(join(kubernetesFolder, name, 'kustomization.yaml')),
);

/** The Secret that the README of the folder tells to make. */
const readme = readFileSync(join(kubernetesFolder, 'README.md'), 'utf8');
const secret = Object.fromEntries(
  [...readme.matchAll(/--from-literal=(\w+)='([^']*)'/g)].map(([, name, value]) => [name, value]),
);

const kubectl = ['kubectl', 'kustomize'].find((program) => spawnSync(program, ['--help']).status === 0);
const itWithKustomize = kubectl ? it : it.skip;
/** It has the schemas of every version, in 17,000 files; those of the newest are enough. */
const otherSchemas = 'kubernetes-json-schema/(?!v1[.]37[.]0-local-strict/)';
const python = spawnSync(
  process.execPath,
  [join(root, 'scripts/python-environment.mjs'), '--without', otherSchemas, 'kubernetes-validate==1.37.0'],
  { encoding: 'utf8' },
);
const itWithValidator = python.status === 0 ? it : it.skip;

/** Variables of an image's last stage. */
function environmentOf(image: string): Record<string, string> {
  const text = readFileSync(join(root, 'docker', `${image.replace('darkroom-', '')}.Dockerfile`), 'utf8');
  const [, block] = /\nENV ((?:.*\\\n)*.*)/.exec(text)!;
  return Object.fromEntries([...block.matchAll(/\b(\w+)=(\S+)/g)].map(([, name, value]) => [name, value]));
}

it('has overlays for processors, GPUs and KEDA', () => {
  expect(overlays.sort()).toEqual(['autoscaled', 'base', 'cpu', 'gpu']);
});

itWithValidator('all are valid for Kubernetes, without an unknown field', () => {
  const place = mkdtempSync(join(tmpdir(), 'darkroom-kubernetes-'));
  const files = overlays.map((overlay) => {
    const known = resourcesOf(join(kubernetesFolder, overlay)).filter(({ kind }) => kind !== 'ScaledObject');
    const path = join(place, `${overlay}.yaml`);
    writeFileSync(path, known.map((resource) => JSON.stringify(resource)).join('\n---\n'));
    return { path, count: known.length };
  });
  const { stdout, stderr, status } = spawnSync(
    join(python.stdout.trim(), 'python'),
    ['-m', 'kubernetes_validate', '--strict', ...files.map(({ path }) => path)],
    { encoding: 'utf8' },
  );
  rmSync(place, { recursive: true });
  expect([status, status === 0 ? '' : stdout + stderr]).toEqual([0, '']);
  for (const { path, count } of files) expect(stdout.split(`${path} passed`)).toHaveLength(count + 1);
});

describe.each(overlays)('docker/kubernetes/%s', (overlay) => {
  const folder = join(kubernetesFolder, overlay);
  const resources = resourcesOf(folder);
  const ofKind = (kind: string): Manifest[] => resources.filter((each) => each.kind === kind);
  const workloads = [...ofKind('Deployment'), ...ofKind('Job')].map(({ spec }) => spec as Workload);
  const pods = workloads.map(({ template }) => template);
  const containers = pods.flatMap(({ spec }) => spec.containers);
  const settingsOf = ({ image, env = [] }: Container): Record<string, string> => ({
    ...environmentOf(image),
    ...(ofKind('ConfigMap')[0].data as Record<string, string>),
    ...secret,
    ...Object.fromEntries(env.map(({ name, value }) => [name, value])),
  });
  const matching = (labels: Record<string, string>) =>
    pods.filter(({ metadata }) => Object.entries(labels).every(([name, value]) => metadata.labels[name] === value));

  itWithKustomize('is what Kustomize makes of it', () => {
    const args = kubectl === 'kubectl' ? ['kustomize', folder] : ['build', folder];
    const { stdout, stderr, status } = spawnSync(kubectl!, args, { encoding: 'utf8' });
    expect([status, stderr]).toEqual([0, '']);
    const made = parseAllDocuments(stdout).map((document) => document.toJS() as Manifest);
    const order = (all: readonly Manifest[]) =>
      [...all].sort((a, b) => `${a.kind}/${a.metadata.name}`.localeCompare(`${b.kind}/${b.metadata.name}`));
    expect(order(resources)).toEqual(order(made));
  });

  it('gives each process settings that it accepts, at the port that it has', () => {
    expect(containers.length).toBeGreaterThan(1);
    for (const container of containers) {
      const found = settingsOf(container);
      expect(Object.keys(found).filter((name) => name !== 'NODE_ENV' && !settings.has(name))).toEqual([]);
      const { port, inferenceHealthPort, s3, databaseUrl, host, dataDir, modelsDir } = loadConfig(found);
      expect(databaseUrl).toBeDefined();
      expect(s3?.bucket).toBe('darkroom');
      expect([host, dataDir, modelsDir]).toEqual(['0.0.0.0', '/data', '/app/models']);
      for (const { name, containerPort } of container.ports ?? [])
        expect(containerPort).toBe({ http: port, health: inferenceHealthPort }[name]);
      if (container.readinessProbe)
        expect(container.ports!.map(({ name }) => name)).toContain(container.readinessProbe.httpGet.port);
    }
  });

  it('runs images and programs that are there, without rights, on a file system that they cannot change', () => {
    for (const { spec } of pods) {
      expect(spec.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1000, fsGroup: 1000 });
      // A process has 30 seconds to finish what it draws or answers.
      if (spec.containers[0].readinessProbe) expect(spec.terminationGracePeriodSeconds).toBeGreaterThan(35);
      const volumes = spec.volumes.map(({ name }) => name).sort();
      for (const { image, command, securityContext, volumeMounts } of spec.containers) {
        expect(existsSync(join(root, 'docker', `${image.replace('darkroom-', '')}.Dockerfile`))).toBe(true);
        if (command) expect(existsSync(join(root, command[1].replace(/^dist\/(.*)\.js$/, '$1.ts')))).toBe(true);
        expect(securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
        expect(volumeMounts.map(({ mountPath }) => mountPath)).toEqual(expect.arrayContaining(['/tmp', '/data']));
        expect(volumeMounts.map(({ name }) => name).sort()).toEqual(volumes);
      }
    }
  });

  it('selects pods that exist, and ports that they have', () => {
    for (const { selector, template } of workloads)
      if (selector) expect(template.metadata.labels).toEqual(selector.matchLabels);
    const [service] = ofKind('Service').map(
      ({ spec }) => spec as { selector: Record<string, string>; ports: { targetPort: string }[] },
    );
    const served = matching(service.selector);
    expect(served).toHaveLength(1);
    expect(served[0].spec.containers[0].ports!.map(({ name }) => name)).toContain(service.ports[0].targetPort);
    const budgets = ofKind('PodDisruptionBudget').map(({ spec }) => spec as Required<Workload>);
    expect(budgets).toHaveLength(ofKind('Deployment').length);
    for (const { selector } of budgets) expect(matching(selector.matchLabels)).toHaveLength(1);
    const policies = ofKind('NetworkPolicy').map(
      ({ spec }) => spec as { podSelector: { matchLabels: Record<string, string> } },
    );
    // The first is for all of them; the base has a rule for workers, and no workers.
    expect(matching(policies[0].podSelector.matchLabels)).toHaveLength(pods.length);
    if (overlay !== 'base')
      for (const { podSelector } of policies) expect(matching(podSelector.matchLabels)).not.toEqual([]);
  });

  it('scales a Deployment that exists, and whose number of pods nobody else sets', () => {
    const scaled = ofKind('ScaledObject');
    expect(scaled).toHaveLength(overlay === 'autoscaled' ? 1 : 0);
    for (const each of scaled) {
      const object = new ScaledObject(each as unknown as ConstructorParameters<typeof ScaledObject>[0]);
      expect(() => object.validate()).not.toThrow();
      const { name } = (each.spec as { scaleTargetRef: { name: string } }).scaleTargetRef;
      const target = ofKind('Deployment').find(({ metadata }) => metadata.name === name);
      expect(target).toBeDefined();
      expect(target!.spec).not.toHaveProperty('replicas');
    }
  });
});
