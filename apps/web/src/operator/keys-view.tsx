import { useEffect, useRef, useState } from 'preact/hooks';
import { lengths } from '../drawings/service-rules';
import { copy } from '../gallery/actions';
import { client } from '../session/session';
import { Button } from '../ui/buttons';
import { Part } from '../ui/card';
import { SelectField, submitting, TextField, textIn } from '../ui/fields';
import { KeyCard, type Secrets } from './key-card';
import { Listed, usePages } from '../ui/reading';

/** Few, because each card asks for its usage. */
const pageSize = 12;

/** The keys with their limits and what they have drawn. */
export function KeysView() {
  const list = usePages(() => client().keys.pages({ limit: pageSize }), pageSize);
  const [secrets, setSecrets] = useState<Secrets | undefined>();
  const change = (found?: Secrets): void => {
    if (found) setSecrets(found);
    list.refresh();
  };
  return (
    <Part id="keys" title="Keys">
      <NewKey onMade={change} />
      {secrets && <ShownSecrets secrets={secrets} onDone={() => setSecrets(undefined)} />}
      <Listed of={list}>
        {(keys) => (
          <ul class="key-cards">
            {keys.map((key) => (
              <KeyCard key={key.id} apiKey={key} onChanged={change} />
            ))}
          </ul>
        )}
      </Listed>
    </Part>
  );
}

const scopes = [
  ['write', 'write: draws'],
  ['read', 'read: looks only'],
  ['admin', 'admin: operates'],
] as const;

function NewKey({ onMade }: { onMade: (secrets: Secrets) => void }) {
  const create = async (form: HTMLFormElement): Promise<void> => {
    const [scope] = scopes.find(([each]) => each === textIn(form, 'scope')) ?? scopes[0];
    const sandbox = new FormData(form).has('sandbox');
    const account = textIn(form, 'account');
    const made = await client().keys.create({
      ...{ name: textIn(form, 'name'), scopes: [scope], sandbox },
      ...(account !== '' && { account }),
    });
    form.reset();
    onMade({
      name: made.name,
      token: made.token ?? '',
      ...(made.webhook_secret !== null && { webhookSecret: made.webhook_secret }),
    });
  };
  return (
    <form class="panel inline-form" aria-label="New key" onSubmit={submitting(create)}>
      <TextField id="key-name" label="Name" name="name" required maxLength={lengths.name} />
      <TextField id="key-account" label="Account" name="account" maxLength={lengths.name} placeholder="its own" />
      <SelectField id="key-scope" label="Scope" name="scope" choices={scopes}>
        <label class="check">
          <input name="sandbox" type="checkbox" /> Sandbox: marked pictures at once, no engine draws
        </label>
      </SelectField>
      <button class="button is-primary">Make a key</button>
    </form>
  );
}

/** Shown once, and kept in memory only. */
function ShownSecrets({ secrets, onDone }: { secrets: Secrets; onDone: () => void }) {
  const { name, token, webhookSecret, previousUntil } = secrets;
  const panel = useRef<HTMLDivElement>(null);
  useEffect(() => panel.current?.focus(), [token, webhookSecret]);
  const what = token === undefined ? `The secret that signs the webhooks of “${name}”` : `The token of “${name}”`;
  const title = `${what}. It is shown this once:`;
  const end = previousUntil && new Date(previousUntil).toLocaleString();
  const previous =
    token === undefined
      ? `They are signed with the previous secret as well until ${end}.`
      : `The previous token works until ${end}.`;
  return (
    <div class="panel secrets" ref={panel} tabIndex={-1} role="group" aria-label={title}>
      <p>{title}</p>
      {token !== undefined && <Secret value={token} />}
      {token !== undefined && webhookSecret !== undefined && <p>The secret of its webhooks:</p>}
      {webhookSecret !== undefined && <Secret value={webhookSecret} />}
      {end !== undefined && <p class="hint">{previous}</p>}
      <div>
        <Button onClick={onDone}>I have it</Button>
      </div>
    </div>
  );
}

function Secret({ value }: { value: string }) {
  return (
    <div class="secret">
      <code>{value}</code>
      <Button onClick={() => void copy(value)}>Copy</Button>
    </div>
  );
}
