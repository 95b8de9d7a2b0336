import { useState } from 'preact/hooks';
import type { KeyDelivery } from '../service/client';
import { client } from '../session/session';
import { Button } from '../ui/buttons';
import { Part, StatusBadge } from '../ui/card';
import { Segments } from '../ui/fields';
import { attempt, say } from '../ui/notices';
import { spanOf } from '../ui/units';
import { Listed, usePages } from '../ui/reading';
import { Ago, type Column, DataTable } from './tables';

const filters = ['all', 'pending', 'failed', 'delivered'] as const;
type Filter = (typeof filters)[number];
const texts: Record<Filter, string> = { all: 'All', pending: 'Pending', failed: 'Given up', delivered: 'Delivered' };
const pageSize = 50;

/** Deliveries to webhooks, and how they went. */
export function DeliveriesView() {
  const [filter, setFilter] = useState<Filter>('all');
  const segments = (
    <Segments
      name="delivery-status"
      label="Status of deliveries"
      options={filters}
      value={filter}
      onChange={setFilter}
      show={(option) => texts[option]}
    />
  );
  return (
    <Part id="deliveries" title="Webhook deliveries" beside={segments}>
      <Deliveries key={filter} filter={filter} />
    </Part>
  );
}

function Deliveries({ filter }: { filter: Filter }) {
  const status = filter === 'all' ? {} : { status: filter };
  const list = usePages(() => client().operator.deliveries({ limit: pageSize, ...status }), pageSize);
  const redeliver = (id: string): void =>
    void attempt(async () => {
      await client().operator.redeliver(id);
      say('It is sent again.');
      list.refresh();
    });
  const columns: Column<KeyDelivery>[] = [
    ['Time', ({ created_at }) => <Ago moment={created_at} />],
    ['Key', ({ key_name }) => key_name],
    ['Receiver', ({ receiver }) => receiver],
    ['Status', ({ status: is }) => <StatusBadge kind={is} text={texts[is]} />],
    ['Tries', ({ attempts }) => attempts, 'number'],
    ['Last answer', (delivery) => <Answer delivery={delivery} />, 'is-long'],
    [
      'Action',
      ({ id, receiver }) => (
        <Button aria-label={`Send again: ${id} to ${receiver}`} onClick={() => redeliver(id)}>
          Send again
        </Button>
      ),
    ],
  ];
  return (
    <Listed of={list}>
      {(rows) => (
        <DataTable
          empty="There are no deliveries."
          label="Webhook deliveries"
          columns={columns}
          rows={rows}
          keyOf={({ id }) => id}
        />
      )}
    </Listed>
  );
}

function Answer({ delivery: { last_attempt: last, next_attempt_at: next } }: { delivery: KeyDelivery }) {
  const waitMs = next === null ? 0 : Date.parse(next) - Date.now();
  return (
    <>
      {last === null ? 'not tried yet' : [last.status_code, last.error].filter(Boolean).join(': ')}
      {next !== null && <span class="hint"> · {waitMs > 0 ? `next in ${spanOf(waitMs)}` : 'next now'}</span>}
    </>
  );
}
