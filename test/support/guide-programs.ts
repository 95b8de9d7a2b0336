import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isListening } from './free-port';
import type { GuideBlock } from './guide-blocks';
import { until } from './until';

interface Language {
  file: string;
  command: (file: string, port: number) => string[];
  /** Succeeds where the command can run. */
  probe: string[];
}

/** Blocks of a page share variables, functions and the folder, as in one terminal. */
const goOn = 'state=$PWD/.state; set -a; if [ -f "$state" ]; then . "$state"; cd "$PWD"; fi; export PORT=$0';
const keep = '{ export -p; declare -f; } > "$state"';

const languages: Readonly<Partial<Record<string, Language>>> = {
  bash: { file: 'block.sh', command: (file) => ['.', file], probe: ['bash', '-c', 'command -v curl && command -v jq'] },
  js: { file: 'program.mjs', command: (file) => [process.execPath, file], probe: [process.execPath, '--version'] },
  python: {
    file: 'program.py',
    command: (file) => ['python3', file],
    probe: ['python3', '-c', 'import sys; sys.exit(sys.version_info < (3, 9))'],
  },
  go: { file: 'program.go', command: (file) => ['go', 'run', file], probe: ['go', 'version'] },
  ruby: { file: 'program.rb', command: (file) => ['ruby', file], probe: ['ruby', '-e', 'require "webrick"'] },
  php: {
    file: 'program.php',
    command: (file, port) => ['php', '-S', `127.0.0.1:${port}`, file],
    probe: ['php', '--version'],
  },
  java: { file: 'Program.java', command: (file) => ['java', file], probe: ['javac', '--version'] },
};

/** Why a block cannot run here; undefined if it can. */
export function whyNot({ language }: Pick<GuideBlock, 'language'>): string | undefined {
  const { probe } = languages[language] ?? {};
  if (!probe) throw new Error(`No program can be made of a block of ${language}.`);
  return spawnSync(probe[0], probe.slice(1)).status === 0 ? undefined : `${language} is not installed`;
}

/** A running program. */
export interface GuideProgram {
  output: () => string;
  errors: () => string;
  /** With its exit code. */
  ended: Promise<number | null>;
  end: () => Promise<void>;
}

/** @param port where it listens if it is a server */
export function startProgram(
  { language, source }: GuideBlock,
  folder: string,
  env: Record<string, string>,
  port = 0,
): GuideProgram {
  const { file, command } = languages[language]!;
  const path = join(folder, file);
  writeFileSync(path, `${source}\n`);
  const script =
    language === 'bash' ? `${goOn}; set -euo pipefail; "$@"; set +u; ${keep}` : `${goOn}; set +a; exec "$@"`;
  // `go run` starts another process: the group is ended as one.
  const child: ChildProcess = spawn('bash', ['-c', script, String(port), ...command(path, port)], {
    cwd: folder,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const texts = { output: '', errors: '' };
  child.stdout!.setEncoding('utf8').on('data', (text: string) => (texts.output += text));
  child.stderr!.setEncoding('utf8').on('data', (text: string) => (texts.errors += text));
  const ended = once(child, 'close').then(([code]: (number | null)[]) => code);
  return {
    output: () => texts.output,
    errors: () => texts.errors,
    ended,
    async end() {
      try {
        process.kill(-child.pid!, 'SIGKILL');
      } catch {
        // It has ended by itself.
      }
      await ended;
    },
  };
}

/** @throws if the program ends before */
export async function untilListening(program: GuideProgram, port: number): Promise<void> {
  let code: number | null | undefined;
  void program.ended.then((ended) => (code = ended));
  await until(async () => {
    if (code !== undefined) throw new Error(`The program ended with ${code}:\n${program.output()}${program.errors()}`);
    return isListening(port);
  }, 'the program listens');
}
