import type { ComponentChildren } from 'preact';
import { spanSince } from '../ui/units';

/** A column: its head, its cell for a row, and the class of its cells. */
export type Column<T> = readonly [head: string, cell: (row: T) => ComponentChildren, kind?: 'number' | 'is-long'];

interface TableProps<T> {
  columns: readonly Column<T>[];
  rows: readonly T[];
  keyOf: (row: T) => string;
}

export function Table<T>({ columns, rows, keyOf }: TableProps<T>) {
  return (
    <table>
      <thead>
        <tr>
          {columns.map(([head]) => (
            <th key={head} scope="col">
              {head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)}>
            {columns.map(([head, cell, kind]) => (
              <td key={head} class={kind}>
                {cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

interface DataTableProps<T> extends TableProps<T> {
  label: string;
  /** Shown in place of a table without rows. */
  empty: string;
}

/** A table that scrolls in its own box on a narrow screen; the box takes the focus, so that the keyboard scrolls it. */
export function DataTable<T>({ label, empty, ...table }: DataTableProps<T>) {
  if (table.rows.length === 0) return <p class="empty">{empty}</p>;
  return (
    <div class="table-box panel" role="group" aria-label={label} tabIndex={0}>
      <Table {...table} />
    </div>
  );
}

const kindText = { generation: 'Generation', prompt: 'Prompt', training: 'Training' };

/** A task by its kind and id. */
export function TaskName({ kind, id }: { kind: keyof typeof kindText; id: string }) {
  return (
    <>
      {kindText[kind]} <code>{id}</code>
    </>
  );
}

/** How long ago a moment was, with the exact time on hover. */
export function Ago({ moment }: { moment: string }) {
  return (
    <time dateTime={moment} title={new Date(moment).toLocaleString()}>
      {spanSince(moment)} ago
    </time>
  );
}

type Figure = readonly [name: string, value: number | string, more?: string];

/** A few numbers, large. */
export function Figures({ figures }: { figures: readonly Figure[] }) {
  return (
    <dl class="figures">
      {figures.map(([name, value, more]) => (
        <div key={name} class="panel">
          <dt>{name}</dt>
          <dd>
            {value}
            {more && <small> {more}</small>}
          </dd>
        </div>
      ))}
    </dl>
  );
}
