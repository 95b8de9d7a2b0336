import { useState } from 'preact/hooks';
import { client } from '../session/session';
import { texts } from '../texts';
import { KeyCard } from './key-card';
import { Loaded } from './loaded';
import { More } from './more';
import { NewKey } from './new-key';
import { usePages } from './pages';
import type { Secrets } from './secrets';
import { ShownSecrets } from './secrets';

/** Keys of a page; few, because each card asks for its usage. */
const pageSize = 12;

/** The keys with their limits and what they have drawn. */
export function KeysView() {
  const list = usePages(() => client().keys.pages({ limit: pageSize }), pageSize);
  const [secrets, setSecrets] = useState<Secrets | undefined>();
  const change = (found?: Secrets): void => {
    if (found) setSecrets(found);
    void list.refresh();
  };
  return (
    <section aria-labelledby="keys">
      <h2 id="keys">{texts.keys.title}</h2>
      <NewKey onMade={change} />
      {secrets && <ShownSecrets secrets={secrets} onDone={() => setSecrets(undefined)} />}
      <Loaded of={list}>
        {(keys) =>
          keys.length === 0 ? (
            <p class="empty">{texts.keys.empty}</p>
          ) : (
            <ul class="key-cards">
              {keys.map((key) => (
                <KeyCard key={key.id} apiKey={key} onChanged={change} />
              ))}
            </ul>
          )
        }
      </Loaded>
      <More list={list} />
    </section>
  );
}
