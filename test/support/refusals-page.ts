import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { cures } from '@app/diffusion';

/** A row of docs/models.md about refused models. */
interface Refusal {
  /** What to do, the last sentence of what is read. */
  cure: string;
  /** What its examples say; an ellipsis stands for anything. */
  says: RegExp[];
}

/** What docs/models.md says about models that are refused. */
export function refusalsOfPage(): Refusal[] {
  const page = readFileSync(join(__dirname, '../../docs/models.md'), 'utf8');
  const known: readonly string[] = Object.values(cures);
  return page.split('\n').flatMap((line) => {
    const [, first = '', second = ''] = line.split('|');
    const [cure] = codeIn(first);
    return known.includes(cure) ? [{ cure, says: codeIn(second).map(asPattern) }] : [];
  });
}

const codeIn = (cell: string): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, code]) => code);

const asPattern = (words: string): RegExp =>
  new RegExp(words.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&').replaceAll('…', '.+'));
