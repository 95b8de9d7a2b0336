import { useEffect, useRef } from 'preact/hooks';
import { copy } from '../gallery/actions';
import { texts } from '../texts';

/** What the service shows only once. */
export interface Secrets {
  name: string;
  token?: string;
  webhookSecret?: string;
  /** Until when the previous token, or else the previous secret, is in use. */
  previousUntil?: string;
}

interface ShownSecretsProps {
  secrets: Secrets;
  onDone: () => void;
}

/** New secrets, until the operator has them. They are in memory only. */
export function ShownSecrets({ secrets, onDone }: ShownSecretsProps) {
  const { name, token, webhookSecret, previousUntil } = secrets;
  const panel = useRef<HTMLDivElement>(null);
  useEffect(() => panel.current?.focus(), [token, webhookSecret]);
  const previous = token === undefined ? texts.keys.previousSecret : texts.keys.previous;
  const title = token === undefined ? texts.keys.newSecret(name) : texts.keys.token(name);
  return (
    <div class="panel secrets" ref={panel} tabIndex={-1} role="group" aria-label={title}>
      <p>{title}</p>
      {token !== undefined && <Secret value={token} />}
      {token !== undefined && webhookSecret !== undefined && <p>{texts.keys.secret}</p>}
      {webhookSecret !== undefined && <Secret value={webhookSecret} />}
      {previousUntil !== undefined && <p class="hint">{previous(new Date(previousUntil).toLocaleString())}</p>}
      <div>
        <button type="button" class="button" onClick={onDone}>
          {texts.keys.done}
        </button>
      </div>
    </div>
  );
}

function Secret({ value }: { value: string }) {
  return (
    <div class="secret">
      <code>{value}</code>
      <button type="button" class="button" onClick={() => void copy(value)}>
        {texts.keys.copy}
      </button>
    </div>
  );
}
