import { currentKey, isOperator, loadCurrentKey } from '../session/current-key';
import { texts } from '../texts';
import { Pending, useLoad } from '../ui/pending';
import { route } from '../ui/route';
import { DeliveriesView } from './deliveries-view';
import { FailuresView } from './failures-view';
import { KeysView } from './keys-view';
import { LiveView } from './live-view';
import { ModelsView } from './models-view';
import { StorageView } from './storage-view';

const views = {
  live: LiveView,
  deliveries: DeliveriesView,
  keys: KeysView,
  models: ModelsView,
  storage: StorageView,
  failures: FailuresView,
};
type Part = keyof typeof views;
const parts = Object.keys(views) as Part[];

/** What the service is at, for keys with the scope `admin`; others are told that it is not for them. */
export function OperatorPage() {
  const [, part] = route.value;
  const current = parts.find((name) => name === part) ?? 'live';
  const View = views[current];
  const load = useLoad(async () => void (currentKey.value ?? (await loadCurrentKey())));
  return (
    <div class="resource-page operator">
      <header>
        <h1>{texts.operator.title}</h1>
        {isOperator.value && <p class="lead">{texts.operator.lead}</p>}
      </header>
      {currentKey.value === undefined ? (
        <Pending of={load} text={texts.operator.loading} />
      ) : isOperator.value ? (
        <>
          <Parts current={current} />
          <View key={current} />
        </>
      ) : (
        <div class="empty">
          <p>{texts.operator.notAllowed}</p>
          <p>
            <a href="#/">{texts.operator.toDraw}</a>
          </p>
        </div>
      )}
    </div>
  );
}

function Parts({ current }: { current: Part }) {
  return (
    <nav class="parts" aria-label={texts.operator.parts}>
      {parts.map((part) => (
        <a key={part} href={`#/operate/${part}`} aria-current={part === current ? 'page' : undefined}>
          {texts.operator.part[part]}
        </a>
      ))}
    </nav>
  );
}
