import type { ComponentChildren } from 'preact';

interface DataTableProps {
  label: string;
  columns: readonly string[];
  children: ComponentChildren;
}

/**
 * A table that scrolls in its own box where the window is narrow; the box takes the focus, so that
 * the keyboard scrolls it.
 */
export function DataTable({ label, columns, children }: DataTableProps) {
  return (
    <div class="table-box panel" role="group" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column} scope="col">
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
