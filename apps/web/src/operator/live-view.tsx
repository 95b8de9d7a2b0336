import type { Queue, Worker } from '../service/client';
import { client } from '../session/session';
import { Card, Facts, Part } from '../ui/card';
import { picturesText, sizeOf, spanSince } from '../ui/units';
import { Loaded, usePolled } from '../ui/reading';
import { type Column, DataTable, Figures, TaskName } from './tables';

const refreshMs = 2_000;

const drawingColumns: Column<Queue['drawing'][number]>[] = [
  ['Id', (task) => <TaskName {...task} />],
  ['Key', ({ key_name }) => key_name],
  ['Model', ({ model }) => model],
  ['Work', ({ pictures, steps }) => `${picturesText(pictures)}, ${steps} steps`],
  ['Attempt', ({ attempt }) => attempt, 'number'],
  ['Drawn for', ({ drawn_since }) => spanSince(drawn_since), 'number'],
];

const waitingColumns: Column<Queue['waiting'][number]>[] = [
  ['Key', ({ key_name }) => key_name],
  ['Model', ({ model }) => model],
  ['Waiting', ({ queued }) => queued, 'number'],
  ['Oldest waits for', ({ oldest_at }) => spanSince(oldest_at), 'number'],
];

interface Live {
  queue: Queue;
  workers: Worker[];
}

async function readLive(): Promise<Live> {
  const { operator } = client();
  const [queue, workers] = await Promise.all([operator.queue(), operator.workers()]);
  return { queue, workers };
}

/** The queue and the workers, as they are now. */
export function LiveView() {
  const live = usePolled(readLive, refreshMs);
  return <Loaded of={live}>{(now) => <Now {...now} />}</Loaded>;
}

function Now({ queue: { queued, processing, deliveries_due, drawing, waiting }, workers }: Live) {
  const figures = [
    ['Waiting', queued],
    ['Drawing', processing],
    ['Deliveries due', deliveries_due],
    ['Workers', workers.length],
  ] as const;
  return (
    <>
      <Figures figures={figures} />
      <Part id="workers" title="Workers">
        {workers.length === 0 ? (
          <p class="empty">No worker is running.</p>
        ) : (
          <ul class="cards">
            {workers.map((worker) => (
              <WorkerCard key={worker.id} worker={worker} />
            ))}
          </ul>
        )}
      </Part>
      <Part id="drawing" title="Drawing">
        <DataTable
          label="Drawing"
          empty="Nothing is drawn at the moment."
          columns={drawingColumns}
          rows={drawing}
          keyOf={({ id }) => id}
        />
      </Part>
      <Part id="queue" title="Queue">
        <DataTable
          label="Queue"
          empty="Nothing waits."
          columns={waitingColumns}
          rows={waiting}
          keyOf={({ key_id, model }) => `${key_id} ${model}`}
        />
      </Part>
    </>
  );
}

function WorkerCard({ worker }: { worker: Worker }) {
  const { id, devices, models, credentials_problem: problem, started_at, heartbeat_at } = worker;
  const times = `up for ${spanSince(started_at)}, heard ${spanSince(heartbeat_at)} ago`;
  return (
    <Card title={<h3>Worker {id.slice(0, 6)}</h3>} status={<span class="hint">{times}</span>}>
      {devices.length === 0 && <p class="hint">This worker has an older version and says nothing of its devices.</p>}
      {devices.map((device) => (
        <DeviceFacts key={device.name} device={device} />
      ))}
      <p class="hint">Can draw: {models.join(', ') || '–'}</p>
      {problem !== null && <p class="problem">Its pictures cannot be signed: {problem}</p>}
    </Card>
  );
}

function DeviceFacts({ device }: { device: Worker['devices'][number] }) {
  const { name, tasks, batch, step_ms, loaded, memory_bytes, memory_limit_bytes } = device;
  const memory = `${sizeOf(memory_bytes)} of ${sizeOf(memory_limit_bytes)}`;
  const facts = [
    { name: 'Batch', value: batch === 0 ? '–' : picturesText(batch) },
    { name: 'Step', value: step_ms === null ? '–' : `${step_ms} ms` },
    { name: 'Loaded', value: loaded.map((model) => model.name).join(', ') || 'no model yet' },
    { name: 'Memory', value: memory },
  ];
  const work = tasks === 0 ? 'Idle' : tasks === 1 ? 'Drawing 1 task' : `Drawing ${tasks} tasks`;
  return (
    <div class="device">
      <div class="card-head">
        <h4>{name}</h4>
        <span class={tasks > 0 ? 'status is-ready' : 'status'}>{work}</span>
      </div>
      <Facts facts={facts} />
      <progress aria-label={`Memory: ${memory}`} max={memory_limit_bytes || 1} value={memory_bytes} />
    </div>
  );
}
