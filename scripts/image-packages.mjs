import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Prints an image's bill of materials in CycloneDX's format: npm packages below `node_modules`, crates in them, system packages, the
 * system itself and Node. It fails if a package has no licence text. scripts/images.mjs pipes it into each image.
 */
const { name, version, license: licence } = JSON.parse(readFileSync('package.json', 'utf8'));

const found = new Map([
  [`pkg:generic/node@${process.versions.node}`, { name: 'node', version: process.versions.node }],
]);

/** Published without a text; both are development tools under MIT. */
const withoutText = ['@pkgr/core', 'tr46'];
const unlicensed = [];

/** A package's own folder is below a `node_modules`, or below a scope in one. */
const isPackage = /(^|\/)node_modules\/(@[^/]+\/)?[^/@]+$/;
for (const { name: file, parentPath } of readdirSync('node_modules', { recursive: true, withFileTypes: true })) {
  if (file !== 'package.json' || !isPackage.test(parentPath)) continue;
  const { name, version, license } = JSON.parse(readFileSync(join(parentPath, file), 'utf8'));
  const hasText = readdirSync(parentPath).some((beside) => /^(licen[cs]e|notice|copying|readme)/i.test(beside));
  if (!hasText && !withoutText.includes(name)) unlicensed.push(`${name}@${version}`);
  const licenses = typeof license === 'string' ? [{ license: { name: license } }] : [];
  found.set(`pkg:npm/${name.replace('@', '%40')}@${version}`, { name, version, licenses });
}

if (unlicensed.length > 0) throw new Error(`These packages have no text of their licence: ${unlicensed.join(', ')}.`);

/** Rust crates that are compiled into a package: the paths of their sources stand in it, and their licences do not. */
const compiled = 'node_modules/@contentauth/c2pa-wasm/pkg/c2pa_bg.wasm';
const crate = /registry\/src\/[\w.-]{1,80}\/([\w-]{1,80}?)-(\d+\.\d+\.\d+[\w.+-]{0,40})\//g;
if (existsSync(compiled))
  for (const [, name, version] of readFileSync(compiled, 'latin1').matchAll(crate))
    found.set(`pkg:cargo/${name}@${version}`, { name, version });

/** Debian's in the images for processors, Ubuntu's in the one for CUDA. */
const system = fieldsOf('/etc/os-release');
for (const line of debianPackages()) {
  const [name, version, machine] = line.split('\t');
  const purl = `pkg:deb/${system.ID}/${name}@${encodeURIComponent(version)}?arch=${machine}&distro=${system.ID}-${system.VERSION_ID}`;
  found.set(purl, { name, version });
}

/** The `NAME=value` lines of a file; none if there is no such file. */
function fieldsOf(file) {
  if (!existsSync(file)) return {};
  const lines = readFileSync(file, 'utf8').matchAll(/^(\w+)="?(.*?)"?$/gm);
  return Object.fromEntries([...lines].map(([, name, value]) => [name, value]));
}

function debianPackages() {
  try {
    const format = '-f=${Package}\\t${Version}\\t${Architecture}\\n';
    return execFileSync('dpkg-query', ['-W', format], { encoding: 'utf8' }).trim().split('\n');
  } catch (error) {
    if (error.code === 'ENOENT') return [];
    throw error;
  }
}

console.log(
  JSON.stringify({
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: {
      component: { type: 'application', name, version, licenses: [{ license: { id: licence } }] },
    },
    components: [
      ...(system.ID ? [{ type: 'operating-system', name: system.ID, version: system.VERSION_ID }] : []),
      ...[...found].map(([purl, component]) => ({ type: 'library', ...component, purl, 'bom-ref': purl })),
    ],
  }),
);
