import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const docs = join(__dirname, '..', '..', 'docs');

/** Commands and files of an operator. No test runs them: they change the machine, or need one of their own. */
const shown = ['sh', 'yaml', 'ini'];

/** A program of a page in `docs`. */
export interface GuideBlock {
  /** The first word after the fence. Tests run `bash`, not `sh`. */
  language: string;
  /** The second: `receiver` and `server` listen and keep running, `browser` is for a page. */
  role?: string;
  source: string;
  /**
   * Expected output, the text block after it; `…` stands for anything. What every receiver prints is one block before
   * the first.
   */
  prints?: string;
  /** In the page. */
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

/** `…` in the expected output stands for anything. */
export function printed(expected: string): RegExp {
  const parts = expected.split('…').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('[^]*?')}$`);
}
