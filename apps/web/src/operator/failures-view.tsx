import type { Failure } from '../service/client';
import { client } from '../session/session';
import { Part } from '../ui/card';
import { Listed, usePages } from '../ui/reading';
import { Ago, type Column, DataTable, TaskName } from './tables';

const pageSize = 50;
const columns: Column<Failure>[] = [
  ['Time', ({ completed_at }) => <Ago moment={completed_at} />],
  ['Key', ({ key_name }) => key_name],
  ['Model', ({ served_by, model }) => served_by ?? model],
  ['Reason', ({ error }) => error ?? 'No reason was stored.', 'is-long'],
  ['Attempts', ({ attempts, worker_deaths: deaths }) => `${attempts}${deathsText(deaths)}`],
  ['Id', (failure) => <TaskName {...failure} />],
];

const deathsText = (count: number): string =>
  count === 0 ? '' : count === 1 ? ', 1 worker ended' : `, ${count} workers ended`;

/** Drawings that failed, and why. */
export function FailuresView() {
  const list = usePages(() => client().operator.failures({ limit: pageSize }), pageSize);
  return (
    <Part id="failures" title="Failed tasks">
      <Listed of={list}>
        {(rows) => (
          <DataTable
            empty="Nothing has failed."
            label="Failed tasks"
            columns={columns}
            rows={rows}
            keyOf={({ id }) => id}
          />
        )}
      </Listed>
    </Part>
  );
}
