import { rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { type ModelDefaults, readModelParts } from '@app/diffusion/files';
import { assembleModel } from './assemble-model';
import { convertModel, type PrecisionWish, usualPrecision, wantedPrecision } from './convert-model';
import type { FetchedModel } from './fetch-model';
import { refusalOfDefaults, writeDefaults } from './installed-defaults';
import { checkKind, listFolder, type ModelLayout } from './model-layout';
import { explainRefusal, ModelStoreError } from './model-store-error';
import type { Watched } from './place-files';
import { type AddedKind, besideParts } from './select-files';

interface PrepareOptions extends Watched, PrecisionWish {
  modelsDir: string;
  /** The folder that its files are in, and one that it may be written into instead. */
  partial: string;
  converted: string;
  /** Path of its file. */
  source: string;
  kind: AddedKind;
  defaults: ModelDefaults | undefined;
  /** What is for files of parts alone. */
  isDistilled?: boolean;
  textEncoder?: string;
}

/** A model that can be installed. */
interface PreparedModel {
  /** Its folder. */
  ready: string;
  layout: ModelLayout;
  /** sha256 of those of its files that were read, by their paths. */
  files: ReadonlyMap<string, string>;
  isLinked: boolean;
}

/**
 * Checks what was fetched, and writes its weights anew where they are in files of parts or in another precision.
 * @throws ModelStoreError
 */
export async function prepareModel(fetched: FetchedModel, options: PrepareOptions): Promise<PreparedModel> {
  const { converted, source, isDistilled, textEncoder } = options;
  if (!fetched.given) {
    if (textEncoder === undefined && isDistilled === undefined) return prepareFolder(fetched, options);
    const option = textEncoder !== undefined ? '--text-encoder' : '--distilled';
    throw new ModelStoreError(
      'InvalidSource',
      `${source} is no file of FLUX.2 [klein] or Z-Image: leave ${option} out.`,
    );
  }
  const layout = await assembleModel(fetched.given, converted, { ...options, name: basename(source) });
  return { ready: converted, layout, files: new Map(), isLinked: false };
}

async function prepareFolder(
  { files, isLinked }: FetchedModel,
  { partial, converted, kind, precision, isForGpu, defaults, ...watched }: PrepareOptions,
): Promise<PreparedModel> {
  if (defaults) await explainRefusal(partial, () => writeDefaults(partial, defaults));
  const layout = await checkKind(partial, kind).catch((error: unknown) => {
    throw (defaults && refusalOfDefaults(error)) ?? error;
  });
  const own = new Set([...layout.files, ...besideParts]);
  for (const path of await listFolder(partial)) if (!own.has(path)) await rm(join(partial, path));
  const usual = async () => usualPrecision(await explainRefusal(partial, () => readModelParts(partial)));
  const wanted = wantedPrecision({ precision, isForGpu }, false);
  const target = wanted ?? (kind !== 'model' ? 'float32' : await usual());
  if (target === 'float32' || target === layout.facts.precision) return { ready: partial, layout, files, isLinked };
  const written = await convertModel(partial, converted, await listFolder(partial), target, watched);
  const left = new Map([...files].filter(([path]) => !written.includes(path)));
  return { ready: converted, layout: await checkKind(converted, kind), files: left, isLinked: false };
}
