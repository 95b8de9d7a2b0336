import type { Queue, Worker } from '../service/client';
import { client } from '../session/session';
import { texts } from '../texts';
import { spanSince } from '../ui/span';
import { DataTable } from './data-table';
import { Loaded } from './loaded';
import { usePolled } from './polled';
import { WorkerCard } from './worker-card';

const refreshMs = 2_000;

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
  return (
    <Loaded of={live}>
      {({ queue, workers }) => (
        <>
          <Figures queue={queue} workers={workers} />
          <section aria-labelledby="workers">
            <h2 id="workers">{texts.live.workers}</h2>
            {workers.length === 0 ? (
              <p class="empty">{texts.live.noWorkers}</p>
            ) : (
              <ul class="cards">
                {workers.map((worker) => (
                  <WorkerCard key={worker.id} worker={worker} />
                ))}
              </ul>
            )}
          </section>
          <section aria-labelledby="drawing">
            <h2 id="drawing">{texts.live.drawing}</h2>
            <Drawing queue={queue} />
          </section>
          <section aria-labelledby="queue">
            <h2 id="queue">{texts.live.queue}</h2>
            <Waiting queue={queue} />
          </section>
        </>
      )}
    </Loaded>
  );
}

function Figures({ queue, workers }: Live) {
  const figures = [
    [texts.live.waiting, queue.queued],
    [texts.live.drawing, queue.processing],
    [texts.live.due, queue.deliveries_due],
    [texts.live.workers, workers.length],
  ] as const;
  return (
    <dl class="figures">
      {figures.map(([name, value]) => (
        <div key={name} class="panel">
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Drawing({ queue: { drawing } }: { queue: Queue }) {
  if (drawing.length === 0) return <p class="empty">{texts.live.nothingDrawn}</p>;
  const columns = [
    texts.failures.id,
    texts.operator.key,
    texts.operator.model,
    texts.live.work,
    texts.live.attempt,
    texts.live.drawnFor,
  ];
  return (
    <DataTable label={texts.live.drawing} columns={columns}>
      {drawing.map(({ id, kind, key_name, model, pictures, steps, attempt, drawn_since }) => (
        <tr key={id}>
          <td>
            {texts.operator.kind[kind]} <code>{id}</code>
          </td>
          <td>{key_name}</td>
          <td>{model}</td>
          <td>{texts.live.workOf(pictures, steps)}</td>
          <td class="number">{attempt}</td>
          <td class="number">{spanSince(drawn_since)}</td>
        </tr>
      ))}
    </DataTable>
  );
}

function Waiting({ queue: { waiting } }: { queue: Queue }) {
  if (waiting.length === 0) return <p class="empty">{texts.live.emptyQueue}</p>;
  const columns = [texts.operator.key, texts.operator.model, texts.live.count, texts.live.oldest];
  return (
    <DataTable label={texts.live.queue} columns={columns}>
      {waiting.map(({ key_id, key_name, model, queued, oldest_at }) => (
        <tr key={`${key_id} ${model}`}>
          <td>{key_name}</td>
          <td>{model}</td>
          <td class="number">{queued}</td>
          <td class="number">{spanSince(oldest_at)}</td>
        </tr>
      ))}
    </DataTable>
  );
}
