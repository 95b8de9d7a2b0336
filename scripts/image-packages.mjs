import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Prints what an image is made of, as a bill of materials in CycloneDX's format: the packages of npm below
 * `node_modules`, those of the system, and Node. scripts/images.mjs runs it in each image, from standard input.
 */
const { name, version, license: licence } = JSON.parse(readFileSync('package.json', 'utf8'));

const found = new Map([
  [`pkg:generic/node@${process.versions.node}`, { name: 'node', version: process.versions.node }],
]);

/** A package's own folder is below a `node_modules`, or below a scope in one. */
const isPackage = /(^|\/)node_modules\/(@[^/]+\/)?[^/@]+$/;
for (const { name: file, parentPath } of readdirSync('node_modules', { recursive: true, withFileTypes: true })) {
  if (file !== 'package.json' || !isPackage.test(parentPath)) continue;
  const { name, version, license } = JSON.parse(readFileSync(join(parentPath, file), 'utf8'));
  const licenses = typeof license === 'string' ? [{ license: { name: license } }] : [];
  found.set(`pkg:npm/${name.replace('@', '%40')}@${version}`, { name, version, licenses });
}

for (const line of debianPackages()) {
  const [name, version, machine] = line.split('\t');
  found.set(`pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=${machine}`, { name, version });
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
    components: [...found].map(([purl, component]) => ({ type: 'library', ...component, purl, 'bom-ref': purl })),
  }),
);
