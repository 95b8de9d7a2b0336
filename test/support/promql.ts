import { parser } from '@prometheus-io/lezer-promql';

/** What a query reads: a metric, the labels that it names, and those that it wants to have one value. */
export interface Selector {
  metric: string;
  labels: string[];
  equal: Record<string, string>;
}

/** Labels that Prometheus itself adds to each series. */
const added = new Set(['job', 'instance']);

/** @throws if it is no query of Prometheus. */
export function selectorsOf(query: string): Selector[] {
  const text = query.replaceAll('$__rate_interval', '5m');
  const selectors: Selector[] = [];
  const grouped: { from: number; to: number; label: string }[] = [];
  const ends: { selector: Selector; from: number }[] = [];
  parser.parse(text).iterate({
    enter({ type, name, from, to, node }) {
      if (type.isError) throw new Error(`"${query}" is no query, from "${text.slice(from)}" on.`);
      const slice = text.slice(from, to);
      const last = selectors[selectors.length - 1] as Selector | undefined;
      if (name === 'VectorSelector') {
        selectors.push({ metric: '', labels: [], equal: {} });
        ends.push({ selector: selectors[selectors.length - 1], from });
      } else if (name === 'Identifier') last!.metric = slice;
      else if (name === 'UnquotedLabelMatcher') {
        const [, label, operator, value] = /^(\w+)\s*(=~|!=|!~|=)\s*"(.*)"$/.exec(slice)!;
        if (added.has(label)) return;
        last!.labels.push(label);
        if (operator === '=') last!.equal[label] = value;
      } else if (name === 'LabelName' && node.parent?.name === 'GroupingLabels') {
        const whole = node.parent.parent?.parent;
        if (whole && !added.has(slice)) grouped.push({ from: whole.from, to: whole.to, label: slice });
      }
    },
  });
  for (const { from, to, label } of grouped)
    for (const end of ends) if (end.from >= from && end.from < to) end.selector.labels.push(label);
  return selectors;
}

/** Series of a metric, by its name: each is its labels. */
export function seriesOf(text: string): Map<string, Record<string, string>[]> {
  const series = new Map<string, Record<string, string>[]>();
  for (const line of text.split('\n')) {
    const [, name, labels = ''] = /^([a-z]\w*)(?:\{(.*)\})? \S+$/.exec(line) ?? [];
    if (!name) continue;
    const pairs = [...labels.matchAll(/\b(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label, value]) => [label, value]);
    series.set(name, [...(series.get(name) ?? []), Object.fromEntries(pairs) as Record<string, string>]);
  }
  return series;
}
