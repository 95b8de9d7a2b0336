import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(__dirname, '..', '..');
const { tags } = JSON.parse(readFileSync(join(root, 'openapi.json'), 'utf8')) as { tags: { name: string }[] };

/** Paths of the pages made from `docs/`, and of two whose files lie beside their subject. */
export const guides: readonly string[] = [
  ...readdirSync(join(root, 'docs')).flatMap((name) =>
    name.endsWith('.md') && name !== 'README.md' ? [name.slice(0, -3)] : [],
  ),
  ...['client', 'kubernetes'],
];

/** The page of a tag of the document, below `/docs/`. */
export const pageOfTag = (tag: string): string => `reference/${tag.toLowerCase().replaceAll(' ', '-')}`;

/** Paths of the pages that are made of `openapi.json`, below `/docs/`. */
export const referencePages: readonly string[] = [
  'reference',
  ...tags.map(({ name }) => pageOfTag(name)),
  'reference/schemas',
];
