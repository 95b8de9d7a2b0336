import { useState } from 'preact/hooks';
import type { KeyDelivery } from '../service/client';
import { client } from '../session/session';
import { texts } from '../texts';
import { attempt, say } from '../ui/notices';
import { Segments } from '../ui/segments';
import { spanOf } from '../ui/span';
import { Ago } from './ago';
import { DataTable } from './data-table';
import { Loaded } from './loaded';
import { More } from './more';
import { usePages } from './pages';

const filters = ['all', 'pending', 'failed', 'delivered'] as const;
type Filter = (typeof filters)[number];
const pageSize = 50;

/** What was posted to webhooks, and how it went. */
export function DeliveriesView() {
  const [filter, setFilter] = useState<Filter>('all');
  const status = filter === 'all' ? {} : { status: filter };
  const list = usePages(() => client().operator.deliveries({ limit: pageSize, ...status }), pageSize, filter);
  const redeliver = (delivery: KeyDelivery): void =>
    void attempt(async () => {
      await client().operator.redeliver(delivery.id);
      say(texts.deliveries.asked);
      await list.refresh();
    });
  return (
    <section aria-labelledby="deliveries">
      <div class="part-head">
        <h2 id="deliveries">{texts.deliveries.title}</h2>
        <Segments
          name="delivery-status"
          label={texts.deliveries.filter}
          options={filters}
          value={filter}
          onChange={setFilter}
          show={(option) => texts.deliveries.status[option]}
        />
      </div>
      <Loaded of={list}>
        {(deliveries) =>
          deliveries.length === 0 ? (
            <p class="empty">{texts.deliveries.empty}</p>
          ) : (
            <Deliveries deliveries={deliveries} onRedeliver={redeliver} />
          )
        }
      </Loaded>
      <More list={list} />
    </section>
  );
}

interface DeliveriesProps {
  deliveries: readonly KeyDelivery[];
  onRedeliver: (delivery: KeyDelivery) => void;
}

function Deliveries({ deliveries, onRedeliver }: DeliveriesProps) {
  const columns = [
    texts.operator.time,
    texts.operator.key,
    texts.deliveries.receiver,
    texts.deliveries.state,
    texts.deliveries.tries,
    texts.deliveries.answer,
    texts.deliveries.action,
  ];
  return (
    <DataTable label={texts.deliveries.title} columns={columns}>
      {deliveries.map((delivery) => (
        <tr key={delivery.id}>
          <td>
            <Ago moment={delivery.created_at} />
          </td>
          <td>{delivery.key_name}</td>
          <td>{delivery.receiver}</td>
          <td>
            <span class={`status is-${delivery.status}`}>{texts.deliveries.status[delivery.status]}</span>
          </td>
          <td class="number">{delivery.attempts}</td>
          <td class="is-long">
            <Answer delivery={delivery} />
          </td>
          <td>
            <button
              type="button"
              class="button"
              aria-label={texts.deliveries.redeliverTo(delivery.receiver, delivery.id)}
              onClick={() => onRedeliver(delivery)}
            >
              {texts.deliveries.redeliver}
            </button>
          </td>
        </tr>
      ))}
    </DataTable>
  );
}

function Answer({ delivery: { last_attempt: last, next_attempt_at: next } }: { delivery: KeyDelivery }) {
  const waitMs = next === null ? 0 : Date.parse(next) - Date.now();
  const nextText = waitMs > 0 ? texts.deliveries.next(spanOf(waitMs)) : texts.deliveries.nextNow;
  return (
    <>
      {last === null ? texts.deliveries.noAnswer : [last.status_code, last.error].filter(Boolean).join(': ')}
      {next !== null && <span class="hint"> · {nextText}</span>}
    </>
  );
}
