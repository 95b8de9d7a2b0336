import { useEffect } from 'preact/hooks';
import { texts } from '../texts';
import { attempt } from '../ui/notices';
import { FinetuneCard } from './finetune-card';
import { areFinetunesLoaded, finetunes, loadFinetunes } from './finetunes';
import { NewFinetune } from './new-finetune';

export function FinetunesPage() {
  useEffect(() => void attempt(loadFinetunes), []);
  return (
    <div class="resource-page">
      <header>
        <h1>{texts.finetunes.title}</h1>
        <p class="lead">{texts.finetunes.lead}</p>
      </header>
      <NewFinetune />
      {!areFinetunesLoaded.value ? (
        <p role="status">{texts.finetunes.loading}</p>
      ) : finetunes.value.length === 0 ? (
        <p class="empty">{texts.finetunes.empty}</p>
      ) : (
        <ul class="cards">
          {finetunes.value.map((finetune) => (
            <FinetuneCard key={finetune.id} finetune={finetune} />
          ))}
        </ul>
      )}
    </div>
  );
}
