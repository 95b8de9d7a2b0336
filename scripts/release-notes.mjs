import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/**
 * `node scripts/release-notes.mjs v1.2.3`: checks that the tag, each package and the changelog name one version, and
 * prints what the changelog says of it.
 */
const root = dirname(import.meta.dirname);
const [tag = ''] = process.argv.slice(2);
const read = (file) => readFileSync(join(root, file), 'utf8');

const problems = ['package.json', 'packages/client/package.json', 'packages/diffusion/package.json', 'openapi.json']
  .map((file) => {
    const { version, info } = JSON.parse(read(file));
    return [file, version ?? info.version];
  })
  .filter(([, version]) => tag !== `v${version}`)
  .map(([file, version]) => `${file} says ${version}.`);

const sections = read('CHANGELOG.md').split(/^(?=## )/m);
const notes = sections.find((section) => section.startsWith(`## ${tag.slice(1)} `));
if (!notes) problems.push(`CHANGELOG.md has no section "## ${tag.slice(1)} (date)".`);
else if (!/^## \S+ \(\d{4}-\d\d-\d\d\)\n/.test(notes)) problems.push(`CHANGELOG.md has no date for ${tag.slice(1)}.`);

if (problems.length > 0) {
  console.error(`${tag || 'No tag'} cannot be released. ${problems.join(' ')}`);
  process.exit(1);
}
console.log(notes.replace(/^.*\n+/, '').trim());
