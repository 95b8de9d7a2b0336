import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const docs = join(__dirname, '..', '..', 'docs');

/** Languages of commands and files of an operator. They change the machine, or need one of their own, so no test runs them. */
const shown = ['sh', 'yaml', 'ini'];

/** A program of a page in `docs`. */
export interface GuideBlock {
  /** The first word after the fence. `bash` is run by a test, `sh` is not. */
  language: string;
  /** The second: `receiver` and `server` listen and go on, `browser` is for a page, none ends by itself. */
  role?: string;
  source: string;
  /**
   * The block of text behind it: what it prints. `…` stands for anything. What every receiver prints is in one block
   * before the first.
   */
  prints?: string;
  /** Its line in the page. */
  line: number;
}

/** The programs of a page, in order. */
export function blocksOf(page: string): GuideBlock[] {
  const lines = readFileSync(join(docs, page), 'utf8').split('\n');
  const blocks: GuideBlock[] = [];
  let ofReceivers: string | undefined;
  for (let at = 0; at < lines.length; at++) {
    const [, info] = /^```(\S.*)$/.exec(lines[at]) ?? [];
    if (info === undefined) continue;
    const line = at + 1;
    const end = lines.indexOf('```', at);
    if (end < 0) throw new Error(`${page}:${line}: the block does not end.`);
    const source = lines.slice(line, end).join('\n');
    const [language, role] = info.split(' ');
    at = end;
    if (shown.includes(language)) continue;
    if (language !== 'text')
      blocks.push({ language, role, source, line, ...(role === 'receiver' && { prints: ofReceivers }) });
    else if (role === 'receiver') ofReceivers = source;
    else blocks[blocks.length - 1].prints = source;
  }
  return blocks;
}

/** Whether an output is the expected one, in which `…` stands for anything. */
export function printed(expected: string): RegExp {
  const parts = expected.split('…').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('[^]*?')}$`);
}
