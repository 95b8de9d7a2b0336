import { texts } from '../texts';
import { Pending, useLoad } from '../ui/pending';
import { FinetuneCard } from './finetune-card';
import { areFinetunesLoaded, finetunes, loadFinetunes } from './finetunes';
import { NewFinetune } from './new-finetune';

export function FinetunesPage() {
  const load = useLoad(loadFinetunes);
  return (
    <div class="resource-page">
      <header>
        <h1>{texts.finetunes.title}</h1>
        <p class="lead">{texts.finetunes.lead}</p>
      </header>
      <NewFinetune />
      {(load.error !== undefined || !areFinetunesLoaded.value) && <Pending of={load} text={texts.finetunes.loading} />}
      {areFinetunesLoaded.value && <Cards />}
    </div>
  );
}

function Cards() {
  if (finetunes.value.length === 0) return <p class="empty">{texts.finetunes.empty}</p>;
  return (
    <ul class="cards">
      {finetunes.value.map((finetune) => (
        <FinetuneCard key={finetune.id} finetune={finetune} />
      ))}
    </ul>
  );
}
