import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { format, resolveConfig } from 'prettier';

/**
 * Writes CHANGELOG.md from the conventional commits: changes that a caller or an operator
 * notices, by version and month.
 */

const root = dirname(import.meta.dirname);
const file = join(root, 'CHANGELOG.md');
/** In this order. Other types of commits change nothing for users. */
const titles = { feat: 'Added', fix: 'Fixed', perf: 'Faster' };
const git = (...args) => execFileSync('git', args, { cwd: root, encoding: 'utf8', maxBuffer: 64 * 2 ** 20 });

/** A commit, its month, and its version if it has a tag. */
function readCommits() {
  const log = git('log', '--no-merges', '--format=%h%x09%ad%x09%D%x09%s', '--date=format:%Y-%m');
  return log
    .trim()
    .split('\n')
    .map((line) => {
      const [hash, month, names, subject] = line.split('\t');
      const version = /tag: v(\d[^,]*)/.exec(names)?.[1];
      const [, type, scope, breaking, text] = /^(\w+)(?:\(([\w-]+)\))?(!?): (.+)$/.exec(subject) ?? [];
      return { hash, month, version, type, scope, isBreaking: breaking === '!', text };
    });
}

/**
 * Groups by version (or the next one, from package.json) and month. A change that appears twice, from two
 * branches, is listed once.
 */
function sectionsOf(commits) {
  const sections = new Map();
  const known = new Set();
  let version = `${JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version}, not released yet`;
  for (const commit of commits) {
    version = commit.version ?? version;
    const title = `${version} (${commit.month})`;
    const change = `${commit.type} ${commit.scope} ${commit.text}`;
    if (known.has(change)) continue;
    known.add(change);
    if (!sections.has(title)) sections.set(title, []);
    sections.get(title).push(commit);
  }
  return sections;
}

function entryOf({ hash, scope, isBreaking, text }) {
  const sentence = `${isBreaking ? '**Breaking:** ' : ''}${text.replace(/[*<]/g, '\\$&')}`;
  return `- ${scope ? `${scope}: ` : ''}${sentence} (\`${hash}\`)`;
}

const lines = ['# Changelog', '', 'Made from the commits by `npm run changelog`.'];
for (const [title, commits] of sectionsOf(readCommits())) {
  lines.push('', `## ${title}`);
  for (const [type, heading] of Object.entries(titles)) {
    const entries = commits.filter((commit) => commit.type === type).map(entryOf);
    if (entries.length > 0) lines.push('', `### ${heading}`, '', ...entries);
  }
}
writeFileSync(file, await format(lines.join('\n'), { ...(await resolveConfig(file)), filepath: file }));
