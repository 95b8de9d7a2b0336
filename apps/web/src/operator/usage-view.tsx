import 'uplot/dist/uPlot.min.css';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Activity } from '../service/client';
import { client } from '../session/session';
import { Part } from '../ui/card';
import { Segments } from '../ui/fields';
import { Loaded, usePolled } from '../ui/reading';
import { type Column, DataTable } from './tables';
import { type Measure, measures, type Per, type Series, seriesOf } from './usage-series';

const refreshMs = 60_000;
const groups = ['all', 'key', 'user', 'model', 'finetune'] as const;
type Group = (typeof groups)[number];

const titles = { all: 'All', key: 'Key', user: 'User', model: 'Model', finetune: 'Fine-Tune' };
const pers = { hour: 'Last 48 hours', day: 'Last 30 days' };

interface Found {
  per: Per;
  by: Group;
  rows: readonly Activity[];
  /** Of keys, by their ids. */
  names: ReadonlyMap<string, string>;
}

async function read(per: Per, by: Group): Promise<Found> {
  const rows = await client().operator.activity({ per, ...(by !== 'all' && { group_by: by }) });
  if (by !== 'key') return { per, by, rows, names: new Map() };
  const keys = await client().keys.list();
  return { per, by, rows, names: new Map(keys.map(({ id, name }) => [id, name])) };
}

const columns: Column<Series>[] = [
  ['Line', ({ name }) => name],
  ['Sum', ({ total }) => total.toLocaleString(undefined, { maximumFractionDigits: 1 }), 'number'],
];

/** Pictures, compute, waiting and failures by hour and day. */
export function UsageView() {
  const [per, setPer] = useState<Per>('hour');
  const [by, setBy] = useState<Group>('all');
  const [measure, setMeasure] = useState<Measure>('images');
  const found = usePolled(() => read(per, by), refreshMs, `${per} ${by}`);
  return (
    <Part id="usage" title="Usage">
      <div class="usage-choice">
        <Segments
          name="usage-measure"
          label="What"
          options={Object.keys(measures) as Measure[]}
          value={measure}
          onChange={setMeasure}
          show={(each) => measures[each].title}
          isSmall
        />
        <Segments
          name="usage-by"
          label="By"
          options={groups}
          value={by}
          onChange={setBy}
          show={(each) => titles[each]}
          isSmall
        />
        <Segments
          name="usage-per"
          label="When"
          options={Object.keys(pers) as Per[]}
          value={per}
          onChange={setPer}
          show={(each) => pers[each]}
          isSmall
        />
      </div>
      <Loaded of={found}>{(rows) => <Plotted {...rows} measure={measure} />}</Loaded>
    </Part>
  );
}

function Plotted({ rows, names, by, per, measure }: Found & { measure: Measure }) {
  const nameOf = (row: Activity): string => (by === 'all' ? 'All' : (names.get(row[by] ?? '') ?? row[by] ?? 'none'));
  const { times, series } = seriesOf(rows, { per, measure, nameOf }, Date.now() / 1000);
  const { title } = measures[measure];
  return (
    <>
      {series.length > 0 && <Chart title={title} times={times} series={series} />}
      <DataTable
        label={title}
        empty="Nothing has ended in this time."
        columns={columns}
        rows={series}
        keyOf={({ name }) => name}
      />
    </>
  );
}

const colours = ['#d5452a', '#2f7fb8', '#4f9a4a', '#c28a1e', '#8a5bb5', '#8a7d6e'];
const height = 260;

function Chart({ title, times, series }: { title: string; times: number[]; series: readonly Series[] }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = place.current;
    if (!element) return undefined;
    let close = (): void => undefined;
    let isOver = false;
    void import('uplot').then(({ default: UPlot }) => {
      if (isOver) return;
      const { color: stroke } = getComputedStyle(element);
      const lines = series.map(({ name }, index) => ({
        label: name,
        stroke: colours[index],
        width: 2,
        points: { show: false },
      }));
      const axis = { stroke, grid: { stroke: 'rgb(128 128 128 / 25%)' } };
      const plot = new UPlot(
        { width: element.clientWidth, height, series: [{}, ...lines], axes: [axis, { ...axis, size: 60 }] },
        [times, ...series.map(({ values }) => values)],
        element,
      );
      const resized = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height }));
      resized.observe(element);
      close = () => {
        resized.disconnect();
        plot.destroy();
      };
    });
    return () => {
      isOver = true;
      close();
    };
  }, [JSON.stringify([times, series])]);
  return (
    <div class="panel usage-plot" ref={place} role="img" aria-label={`${title} as lines; the table has the sums`} />
  );
}
