import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** Prefix of a command that writes its connections and those of its children to a file. */
export const underStrace = (file: string): string[] => [
  ...['strace', '-D', '-f', '--seccomp-bpf', '--quiet=all', '-e', 'trace=connect', '-A', '-o', file],
];

/** Why strace does not work here; undefined if it does. */
export function whyNoStrace(): string | undefined {
  const { error, status, stderr } = spawnSync('strace', ['-f', '-e', 'trace=connect', 'true'], { encoding: 'utf8' });
  return error || status !== 0 ? `strace cannot be used (${error?.message ?? stderr.trim()})` : undefined;
}

/** Addresses outside this machine, and name servers, that a command tried to reach. */
export function connectionsOutward(file: string): string[] {
  const lines = readFileSync(file, 'utf8').split('\n');
  if (!lines.some((line) => line.includes('connect('))) throw new Error(`${file} has no connection at all.`);
  return lines.filter((line) => {
    const [, port] = /sin6?_port=htons\((\d+)\)/.exec(line) ?? [];
    return port !== undefined && (port === '53' || !/"(127\.[\d.]+|::1|::ffff:127\.[\d.]+)"/.test(line));
  });
}
