import { areModelsLoaded, models, ownScheduler } from '../models/models';
import type { Model } from '../service/client';
import { Card, Facts, Part, StatusBadge } from '../ui/card';
import { sizeOf } from '../ui/units';

/** Installed models and the names they draw for; the page rereads them every few seconds anyway. */
export function ModelsView() {
  return (
    <Part id="models" title="Models">
      {!areModelsLoaded.value ? (
        <p role="status">Loading …</p>
      ) : models.value.length === 0 ? (
        <p class="empty">No model is installed: npm run models -- add installs one.</p>
      ) : (
        <ul class="cards">
          {models.value.map((model) => (
            <ModelCard key={model.name} model={model} />
          ))}
        </ul>
      )}
    </Part>
  );
}

function StatusOf({ model: { problem, device } }: { model: Model }) {
  if (problem !== null) return <StatusBadge kind="broken" text="Broken" />;
  return device === null ? <StatusBadge kind="waiting" text="No worker" /> : <StatusBadge kind="ready" text="Ready" />;
}

/** Family, size, and kind unless it is the usual one. */
function whatIs({ family_title: family, kind, native_size: size }: Model): string {
  if (family === null) return '–';
  const what = `${family}, ${size} px`;
  return kind === 'text-to-image' ? what : `${what}, ${kind}`;
}

function ModelCard({ model }: { model: Model }) {
  const { name, hash, bytes, device, stands_in_for: drawsFor, defaults, scheduler, problem, precision } = model;
  const facts = [
    { name: 'What', value: whatIs(model) },
    { name: 'Draws for', value: drawsFor.join(', ') || 'only itself' },
    { name: 'Drawn on', value: device ?? 'no running worker has it' },
    { name: 'Defaults', value: `${defaults.steps} steps, guidance ${defaults.cfg}` },
    { name: 'Scheduler', value: defaults.scheduler ?? ownScheduler(scheduler) },
    { name: 'On disk', value: precision === null ? sizeOf(bytes) : `${sizeOf(bytes)} in ${precision}` },
    { name: 'Hash', value: hash ?? '–' },
  ];
  return (
    <Card title={<h3>{name}</h3>} status={<StatusOf model={model} />}>
      <Facts facts={facts} />
      {problem !== null && <p class="problem">Cannot be drawn with: {problem}</p>}
    </Card>
  );
}
