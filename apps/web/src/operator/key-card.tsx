import type { Key } from '../service/client';
import { currentKey } from '../session/current-key';
import { client } from '../session/session';
import { texts } from '../texts';
import { ConfirmButton } from '../ui/confirm-button';
import { attempt, say } from '../ui/notices';
import { spanSince } from '../ui/span';
import { KeyLimits } from './key-limits';
import { KeyUsage } from './key-usage';
import type { Secrets } from './secrets';

interface KeyCardProps {
  apiKey: Key;
  /** Gets what is new, of a key that has a new token or a new secret. */
  onChanged: (secrets?: Secrets) => void;
}

/** A key: what it may do, how much, and what it has drawn. */
export function KeyCard({ apiKey, onChanged }: KeyCardProps) {
  const { id, name, prefix, scopes, sandbox, created_at, last_used_at, revoked_at } = apiKey;
  const isOwn = id === currentKey.value?.id;
  const status = revoked_at === null ? 'active' : 'revoked';
  const { ago } = texts.operator;
  const facts = [
    scopes.join(', '),
    ...(sandbox ? [texts.keys.sandboxShort] : []),
    texts.keys.made(ago(spanSince(created_at))),
    last_used_at === null ? texts.keys.unused : texts.keys.used(ago(spanSince(last_used_at))),
  ];
  return (
    <li class="card panel">
      <div class="card-head">
        <h3>
          {name} {isOwn && <small>({texts.keys.yours})</small>}
        </h3>
        <span class={`status is-${status === 'active' ? 'ready' : status}`}>{texts.keys.status[status]}</span>
      </div>
      <p class="hint">
        <code>{prefix}</code> · {facts.join(' · ')}
      </p>
      <KeyUsage id={id} name={name} />
      {revoked_at === null && (
        <>
          <KeyLimits apiKey={apiKey} onChanged={onChanged} />
          <Actions apiKey={apiKey} isOwn={isOwn} onChanged={onChanged} />
        </>
      )}
    </li>
  );
}

function Actions({ apiKey: { id, name }, isOwn, onChanged }: KeyCardProps & { isOwn: boolean }) {
  const rotate = async (): Promise<void> => {
    const made = await client().keys.rotate(id);
    onChanged({ name, token: made.token ?? '', previousUntil: made.previous_token_expires_at });
  };
  const rotateWebhookSecret = async (): Promise<void> => {
    const made = await client().keys.rotateWebhookSecret(id);
    onChanged({
      name,
      webhookSecret: made.webhook_secret ?? '',
      previousUntil: made.previous_webhook_secret_expires_at,
    });
  };
  const revoke = async (): Promise<void> => {
    await client().keys.revoke(id);
    say(texts.keys.revoked);
    onChanged();
  };
  return (
    <div class="actions">
      <ConfirmButton
        label={texts.keys.rotate}
        fullLabel={texts.keys.rotateOf(name)}
        icon="reuse"
        question={texts.keys.confirmRotate}
        answers={{ yes: texts.keys.rotate, no: texts.keys.no }}
        onConfirm={() => void attempt(rotate)}
      />
      <ConfirmButton
        label={texts.keys.rotateSecret}
        fullLabel={texts.keys.rotateSecretOf(name)}
        icon="reuse"
        question={texts.keys.confirmRotateSecret}
        answers={{ yes: texts.keys.rotateSecret, no: texts.keys.no }}
        onConfirm={() => void attempt(rotateWebhookSecret)}
      />
      {!isOwn && (
        <ConfirmButton
          label={texts.keys.revoke}
          fullLabel={texts.keys.revokeOf(name)}
          question={texts.keys.confirmRevoke}
          answers={{ yes: texts.keys.revoke, no: texts.keys.no }}
          onConfirm={() => void attempt(revoke)}
        />
      )}
    </div>
  );
}
