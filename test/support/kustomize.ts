import { readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';

/** A resource of Kubernetes, as its manifest has it. */
export interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name: string; labels?: Record<string, string> };
  [field: string]: unknown;
}

interface Kustomization {
  resources: string[];
  patches?: { path: string }[];
}

/** Lists whose elements a patch changes by their name; it replaces any other list. */
const namedLists = new Set(['containers', 'env', 'volumes']);

/**
 * The resources of an overlay, with the part of Kustomize that ours use: resources, and patches of one resource that
 * are merged into it.
 */
export function resourcesOf(folder: string): Manifest[] {
  const { resources, patches, ...others } = parse(
    readFileSync(join(folder, 'kustomization.yaml'), 'utf8'),
  ) as Kustomization;
  const unknown = Object.keys(others).filter((name) => name !== 'apiVersion' && name !== 'kind');
  if (unknown.length > 0) throw new Error(`${folder} uses ${unknown.join(', ')}, which is not known here.`);
  const found = resources.flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? resourcesOf(path) : documentsOf(path);
  });
  for (const { path } of patches ?? [])
    for (const patch of documentsOf(join(folder, path))) {
      const at = found.findIndex(({ kind, metadata }) => kind === patch.kind && metadata.name === patch.metadata.name);
      if (at < 0)
        throw new Error(`${join(folder, path)} patches ${patch.kind} ${patch.metadata.name}, which is not there.`);
      found[at] = merge(found[at], patch) as Manifest;
    }
  return found;
}

function documentsOf(path: string): Manifest[] {
  return parseAllDocuments(readFileSync(path, 'utf8')).map((document) => {
    if (document.errors.length > 0) throw new Error(`${path}: ${document.errors[0].message}`);
    return document.toJS() as Manifest;
  });
}

/** The folder of all overlays. */
export const kubernetesFolder = join(dirname(dirname(__dirname)), 'docker', 'kubernetes');

interface Named {
  name: string;
  $patch?: 'delete';
}

function merge(base: unknown, patch: unknown, field = ''): unknown {
  if (Array.isArray(base) && Array.isArray(patch) && namedLists.has(field))
    return mergeNamed(base as Named[], patch as Named[]);
  if (!isObject(base) || !isObject(patch)) return patch;
  const merged = { ...base };
  for (const [name, value] of Object.entries(patch))
    if (value === null) delete merged[name];
    else merged[name] = merge(base[name], value, name);
  return merged;
}

function mergeNamed(base: readonly Named[], patch: readonly Named[]): unknown[] {
  const kept = base.filter(({ name }) => !patch.some((change) => change.name === name && change.$patch === 'delete'));
  const merged = kept.map((element) => {
    const change = patch.find(({ name }) => name === element.name);
    return change ? merge(element, change) : element;
  });
  const added = patch.filter(({ name, $patch }) => !$patch && !base.some((element) => element.name === name));
  return [...merged, ...added];
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
