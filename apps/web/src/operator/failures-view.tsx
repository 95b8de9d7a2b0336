import type { Failure } from '../service/client';
import { client } from '../session/session';
import { texts } from '../texts';
import { Ago } from './ago';
import { DataTable } from './data-table';
import { Loaded } from './loaded';
import { More } from './more';
import { usePages } from './pages';

const pageSize = 50;
const columns = [
  texts.operator.time,
  texts.operator.key,
  texts.operator.model,
  texts.failures.reason,
  texts.failures.attempts,
  texts.failures.id,
];

/** What failed, and why. */
export function FailuresView() {
  const list = usePages(() => client().operator.failures({ limit: pageSize }), pageSize);
  return (
    <section aria-labelledby="failures">
      <h2 id="failures">{texts.failures.title}</h2>
      <Loaded of={list}>
        {(failures) =>
          failures.length === 0 ? (
            <p class="empty">{texts.failures.empty}</p>
          ) : (
            <DataTable label={texts.failures.title} columns={columns}>
              {failures.map((failure) => (
                <FailureRow key={failure.id} failure={failure} />
              ))}
            </DataTable>
          )
        }
      </Loaded>
      <More list={list} />
    </section>
  );
}

function FailureRow({ failure }: { failure: Failure }) {
  const { id, kind, key_name, model, served_by, error, attempts, worker_deaths, completed_at } = failure;
  return (
    <tr>
      <td>
        <Ago moment={completed_at} />
      </td>
      <td>{key_name}</td>
      <td>{served_by ?? model}</td>
      <td class="is-long">{error ?? texts.failures.unknown}</td>
      <td>
        {attempts}
        {worker_deaths > 0 && texts.failures.deaths(worker_deaths)}
      </td>
      <td>
        {texts.operator.kind[kind]} <code>{id}</code>
      </td>
    </tr>
  );
}
