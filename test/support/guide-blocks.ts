import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const docs = join(__dirname, '..', '..', 'docs');

/** A program of a page in `docs`. */
export interface GuideBlock {
  /** The first word after the fence. */
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
    const end = lines.indexOf('```', at);
    if (end < 0) throw new Error(`${page}:${at + 1}: the block does not end.`);
    const source = lines.slice(at + 1, end).join('\n');
    const [language, role] = info.split(' ');
    if (language !== 'text')
      blocks.push({ language, role, source, line: at + 1, ...(role === 'receiver' && { prints: ofReceivers }) });
    else if (role === 'receiver') ofReceivers = source;
    else blocks[blocks.length - 1].prints = source;
    at = end;
  }
  return blocks;
}

/** Whether an output is the expected one, in which `…` stands for anything. */
export function printed(expected: string): RegExp {
  const parts = expected.split('…').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('[^]*?')}$`);
}
