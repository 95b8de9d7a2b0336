import { useEffect, useRef } from 'preact/hooks';
import { currentKey, isOperator, loadCurrentKey } from '../session/session';
import { Loaded, usePolled } from '../ui/reading';
import { route } from '../ui/route';
import { DeliveriesView } from './deliveries-view';
import { FailuresView } from './failures-view';
import { KeysView } from './keys-view';
import { LiveView } from './live-view';
import { ModelsView } from './models-view';
import { StorageView } from './storage-view';
import { UsageView } from './usage-view';

/** Scopes of a key seldom change. */
const refreshMs = 60_000;

/** By their routes. */
const parts = [
  ['live', 'Live', LiveView],
  ['usage', 'Usage', UsageView],
  ['deliveries', 'Deliveries', DeliveriesView],
  ['keys', 'Keys', KeysView],
  ['models', 'Models', ModelsView],
  ['storage', 'Storage', StorageView],
  ['failures', 'Failures', FailuresView],
] as const;

/** State of the service, for keys with the scope `admin`; others are told so. */
export function OperatorPage() {
  const [, part] = route.value;
  const [current, , View] = parts.find(([name]) => name === part) ?? parts[0];
  const { error } = usePolled(loadCurrentKey, refreshMs);
  return (
    <div class="resource-page operator">
      <header>
        <h1>Operate</h1>
        {isOperator.value && <p class="lead">What the service is at, over all keys.</p>}
      </header>
      <Loaded of={{ value: currentKey.value, error }}>
        {() =>
          isOperator.value ? (
            <>
              <Parts current={current} />
              <View key={current} />
            </>
          ) : (
            <div class="empty">
              <p>This page is for operators: it needs a key with the scope “admin”, and yours does not have it.</p>
              <p>
                <a href="#/">Back to drawing</a>
              </p>
            </div>
          )
        }
      </Loaded>
    </div>
  );
}

function Parts({ current }: { current: string }) {
  const nav = useRef<HTMLElement>(null);
  useEffect(() => {
    nav.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' });
  }, [current]);
  return (
    <nav class="parts" aria-label="Parts" ref={nav}>
      {parts.map(([name, title]) => (
        <a key={name} href={`#/operate/${name}`} aria-current={name === current ? 'page' : undefined}>
          {title}
        </a>
      ))}
    </nav>
  );
}
