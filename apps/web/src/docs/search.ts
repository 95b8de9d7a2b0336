import type MiniSearch from 'minisearch';

/** A part of a page, from one heading to the next. */
export interface Section {
  id: string;
  page: string;
  heading: string;
  /** Below `/docs/`. */
  path: string;
  text: string;
  /** Whether it is the beginning of its page. */
  isWhole: boolean;
}

const maxResults = 20;
const shownLength = 180;

let index: Promise<MiniSearch<Section>> | undefined;

/**
 * Sections with the words, or with words that begin like them or are spelled nearly so, the best first; where none has
 * all words, those with some.
 */
export async function searchIn(query: string): Promise<Omit<Section, 'id' | 'isWhole'>[]> {
  const sections = await (index ??= loadAgainAfterFailure());
  const withAll = sections.search(query);
  const found = withAll.length > 0 ? withAll : sections.search(query, { combineWith: 'OR' });
  return found.slice(0, maxResults).map(({ page, heading, path, text, terms }) => ({
    page: String(page),
    heading: String(heading),
    path: String(path),
    text: around(String(text), terms),
  }));
}

/** A failed load is not kept, so that the next search tries again. */
async function loadAgainAfterFailure(): Promise<MiniSearch<Section>> {
  try {
    return await load();
  } catch (error) {
    index = undefined;
    throw error;
  }
}

/** Guides come before the reference, and that before files of the repository. */
const boostOf = (path: string): number => (path.startsWith('reference') ? 2 : path.startsWith('files/') ? 1 : 12);

/** Words and texts are loaded with the first search only. */
async function load(): Promise<MiniSearch<Section>> {
  const [{ default: Search }, { default: sections }] = await Promise.all([
    import('minisearch'),
    import('virtual:search-index'),
  ]);
  const made = new Search<Section>({
    // A path has the name of a file, such as `finetunes`.
    fields: ['heading', 'page', 'path', 'text'],
    storeFields: ['page', 'heading', 'path', 'text', 'isWhole'],
    searchOptions: {
      ...{ boost: { heading: 3, page: 2 }, prefix: true, fuzzy: 0.2, combineWith: 'AND' },
      // If a title has the word, the whole page comes before parts of others, and a guide before the reference.
      boostDocument: (id, word, { isWhole, page } = {}) =>
        isWhole && `${String(page)} ${String(id)}`.toLowerCase().includes(word) ? boostOf(String(id)) : 1,
    },
  });
  made.addAll(sections);
  return made;
}

/** The text around the first of the words. */
function around(text: string, words: readonly string[]): string {
  const lower = text.toLowerCase();
  const places = words.map((word) => lower.indexOf(word)).filter((place) => place >= 0);
  const start = Math.max(0, Math.min(...places, text.length) - shownLength / 3);
  const cut = places.length === 0 ? text.slice(0, shownLength) : text.slice(start, start + shownLength);
  return `${start > 0 && places.length > 0 ? '…' : ''}${cut}${cut.length < text.length ? '…' : ''}`;
}
