import { useEffect, useRef } from 'preact/hooks';
import { copy } from '../gallery/actions';
import { texts } from '../texts';

/** What the service shows only once. */
export interface Secrets {
  name: string;
  token: string;
  webhookSecret?: string;
  /** Until when the previous token is accepted. */
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
  useEffect(() => panel.current?.focus(), [token]);
  return (
    <div class="panel secrets" ref={panel} tabIndex={-1} role="group" aria-label={texts.keys.token(name)}>
      <p>{texts.keys.token(name)}</p>
      <Secret value={token} />
      {webhookSecret !== undefined && (
        <>
          <p>{texts.keys.secret}</p>
          <Secret value={webhookSecret} />
        </>
      )}
      {previousUntil !== undefined && (
        <p class="hint">{texts.keys.previous(new Date(previousUntil).toLocaleString())}</p>
      )}
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
