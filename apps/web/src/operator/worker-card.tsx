import type { Worker } from '../service/client';
import { texts } from '../texts';
import { Facts } from '../ui/facts';
import { sizeOf } from '../ui/size';
import { spanSince } from '../ui/span';

type Device = Worker['devices'][number];

/** A worker and its devices. */
export function WorkerCard({ worker: { id, devices, models, started_at, heartbeat_at } }: { worker: Worker }) {
  return (
    <li class="card panel">
      <div class="card-head">
        <h3>{texts.live.worker(id)}</h3>
        <span class="hint">
          {texts.live.since(spanSince(started_at))}, {texts.live.beat(texts.operator.ago(spanSince(heartbeat_at)))}
        </span>
      </div>
      {devices.length === 0 && <p class="hint">{texts.live.silentDevices}</p>}
      {devices.map((device) => (
        <DeviceFacts key={device.name} device={device} />
      ))}
      <p class="hint">
        {texts.live.canDraw}: {models.join(', ') || texts.operator.none}
      </p>
    </li>
  );
}

function DeviceFacts({ device }: { device: Device }) {
  const { name, tasks, batch, step_ms, loaded, memory_bytes, memory_limit_bytes } = device;
  const memory = texts.live.memoryOf(sizeOf(memory_bytes), sizeOf(memory_limit_bytes));
  const facts = [
    { name: texts.live.batch, value: batch === 0 ? texts.operator.none : texts.live.pictures(batch) },
    { name: texts.live.step, value: step_ms === null ? texts.operator.none : texts.live.milliseconds(step_ms) },
    { name: texts.live.loaded, value: loaded.map((model) => model.name).join(', ') || texts.live.noModel },
    { name: texts.live.memory, value: memory },
  ];
  return (
    <div class="device">
      <div class="card-head">
        <h4>{name}</h4>
        <span class={tasks > 0 ? 'status is-ready' : 'status'}>
          {tasks > 0 ? texts.live.atWork(tasks) : texts.live.idle}
        </span>
      </div>
      <Facts facts={facts} />
      <progress aria-label={`${texts.live.memory}: ${memory}`} max={memory_limit_bytes || 1} value={memory_bytes} />
    </div>
  );
}
