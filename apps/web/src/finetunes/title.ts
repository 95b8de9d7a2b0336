interface Titled {
  id: string;
  name: string;
  title?: string | null;
  created_at: string;
}

/**
 * The title of each by its id: its own or its name; where several are equal, with the time of creation; within one
 * second, with the id too.
 */
export function titlesOf(all: readonly Titled[]): ReadonlyMap<string, string> {
  const titles = new Map(all.map((each) => [each.id, each.title ?? each.name]));
  tellApart(all, titles, ({ created_at }) => new Date(created_at).toLocaleString());
  tellApart(all, titles, ({ id }) => id);
  return titles;
}

/** Adds to equal titles what differs. */
function tellApart(all: readonly Titled[], titles: Map<string, string>, difference: (each: Titled) => string): void {
  const counts = new Map<string, number>();
  for (const title of titles.values()) counts.set(title, (counts.get(title) ?? 0) + 1);
  for (const each of all) {
    const title = titles.get(each.id)!;
    if (counts.get(title)! > 1) titles.set(each.id, `${title} (${difference(each)})`);
  }
}
