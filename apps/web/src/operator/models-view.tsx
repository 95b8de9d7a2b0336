import { areModelsLoaded, models } from '../models/models';
import type { Model } from '../service/client';
import { texts } from '../texts';
import { Facts } from '../ui/facts';
import { sizeOf } from '../ui/size';

/** What is installed, and what each model draws for; the page reads it again every few seconds anyway. */
export function ModelsView() {
  return (
    <section aria-labelledby="models">
      <h2 id="models">{texts.installed.title}</h2>
      {!areModelsLoaded.value ? (
        <p role="status">{texts.operator.loading}</p>
      ) : models.value.length === 0 ? (
        <p class="empty">{texts.installed.empty}</p>
      ) : (
        <ul class="cards">
          {models.value.map((model) => (
            <ModelCard key={model.name} model={model} />
          ))}
        </ul>
      )}
    </section>
  );
}

const statusOf = ({ problem, device }: Model): keyof typeof texts.installed.status =>
  problem !== null ? 'broken' : device === null ? 'waiting' : 'ready';

function ModelCard({ model }: { model: Model }) {
  const { name, hash, bytes, device, stands_in_for: drawsFor, defaults, scheduler, requires_cuda, problem } = model;
  const status = statusOf(model);
  const facts = [
    { name: texts.installed.drawsFor, value: drawsFor.join(', ') || texts.installed.onlyItself },
    { name: texts.installed.device, value: device ?? texts.installed.noDevice },
    { name: texts.installed.defaults, value: texts.installed.defaultsOf(defaults.steps, defaults.cfg) },
    { name: texts.draw.scheduler, value: defaults.scheduler ?? texts.draw.schedulerOwn(scheduler) },
    { name: texts.installed.size, value: sizeOf(bytes) },
    { name: texts.installed.hash, value: hash ?? texts.operator.none },
  ];
  return (
    <li class="card panel">
      <div class="card-head">
        <h3>{name}</h3>
        <span class={`status is-${status}`}>{texts.installed.status[status]}</span>
      </div>
      <Facts facts={facts} />
      {requires_cuda && <p class="hint">{texts.installed.needsCuda}</p>}
      {problem !== null && (
        <p class="problem">
          {texts.installed.problem}: {problem}
        </p>
      )}
    </li>
  );
}
