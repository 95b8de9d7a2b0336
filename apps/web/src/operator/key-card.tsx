import type { Key, KeyChange } from '../service/client';
import { client, currentKey } from '../session/session';
import { ConfirmButton } from '../ui/buttons';
import { Card, StatusBadge } from '../ui/card';
import { SelectField, submitting, TextField, textIn } from '../ui/fields';
import { attempt, say } from '../ui/notices';
import { spanSince } from '../ui/units';
import { KeyUsage } from './key-usage';

/** Secrets that the service shows only once. */
export interface Secrets {
  name: string;
  token?: string;
  webhookSecret?: string;
  /** When the previous token, or else the previous secret, ends. */
  previousUntil?: string;
}

interface KeyCardProps {
  apiKey: Key;
  /** Called with new secrets after a rotation. */
  onChanged: (secrets?: Secrets) => void;
}

/** A key: its scopes, its limits and its usage. */
export function KeyCard({ apiKey, onChanged }: KeyCardProps) {
  const { id, name, account, prefix, scopes, sandbox, created_at, last_used_at, revoked_at } = apiKey;
  const isOwn = id === currentKey.value?.id;
  const facts = [
    ...(account === null ? [] : [`account ${account}`]),
    scopes.join(', '),
    ...(sandbox ? ['sandbox'] : []),
    `made ${spanSince(created_at)} ago`,
    last_used_at === null ? 'never used' : `last used ${spanSince(last_used_at)} ago`,
  ];
  const title = (
    <h3>
      {name} {isOwn && <small>(yours)</small>}
    </h3>
  );
  const isActive = revoked_at === null;
  const [kind, status] = isActive ? ['ready', 'Active'] : ['revoked', 'Revoked'];
  return (
    <Card title={title} status={<StatusBadge kind={kind} text={status} />}>
      <p class="hint">
        <code>{prefix}</code> · {facts.join(' · ')}
      </p>
      <KeyUsage id={id} name={name} />
      {isActive && (
        <>
          <KeyLimits apiKey={apiKey} onChanged={onChanged} />
          <Actions apiKey={apiKey} isOwn={isOwn} onChanged={onChanged} />
        </>
      )}
    </Card>
  );
}

function Actions({ apiKey: { id, name }, isOwn, onChanged }: KeyCardProps & { isOwn: boolean }) {
  const { keys } = client();
  const rotate = async (): Promise<void> => {
    const made = await keys.rotate(id);
    onChanged({ name, token: made.token ?? '', previousUntil: made.previous_token_expires_at });
  };
  const rotateSecret = async (): Promise<void> => {
    const { webhook_secret, previous_webhook_secret_expires_at: previousUntil } = await keys.rotateWebhookSecret(id);
    onChanged({ name, webhookSecret: webhook_secret ?? '', previousUntil });
  };
  const revoke = async (): Promise<void> => {
    await keys.revoke(id);
    say('The key was revoked.');
    onChanged();
  };
  return (
    <div class="actions">
      <ConfirmButton
        label="New token"
        fullLabel={`New token for ${name}`}
        icon="reuse"
        question="Make a new token? The previous one works for another day."
        answers={{ yes: 'New token', no: 'No' }}
        onConfirm={() => void attempt(rotate)}
      />
      <ConfirmButton
        label="New webhook secret"
        fullLabel={`New webhook secret for ${name}`}
        icon="reuse"
        question="Make a new secret? Webhooks are signed with both for another day."
        answers={{ yes: 'New webhook secret', no: 'No' }}
        onConfirm={() => void attempt(rotateSecret)}
      />
      {!isOwn && (
        <ConfirmButton
          label="Revoke"
          fullLabel={`Revoke ${name}`}
          question="Revoke it? What it has waiting is canceled, and it never works again."
          answers={{ yes: 'Revoke', no: 'No' }}
          onConfirm={() => void attempt(revoke)}
        />
      )}
    </div>
  );
}

/** A field, its label, and the placeholder of an empty one. */
const limits = [
  ['rate_limit_per_minute', 'Requests a minute', 'default'],
  ['max_queued', 'Waiting tasks', 'default'],
  ['max_concurrent', 'Drawn at once', 'default'],
  ['max_storage_mb', 'Storage (MB)', 'default'],
  ['retention_days', 'Kept for (days)', 'keep'],
] as const;

/** Only what the form changes: somebody else may have changed the rest meanwhile. */
function changeIn(form: HTMLFormElement, apiKey: Key): KeyChange {
  const wanted = limits.map(([field, , empty]) => {
    const text = textIn(form, field);
    return { field, number: text === '' ? null : Number(text), empty };
  });
  const changed = wanted.filter(({ field, number }) => number !== apiKey[field]);
  const filter = textIn(form, 'filter') as Key['filter'];
  return {
    ...Object.fromEntries(changed.map(({ field, number, empty }) => [field, number ?? empty])),
    ...(filter !== apiKey.filter && { filter }),
  };
}

/** What becomes of pictures that the safety checker flags. */
const filters = [
  ['off', 'Not looked for'],
  ['report', 'Stored, and named in the record'],
  ['block', 'Not stored'],
] as const;

function KeyLimits({ apiKey, onChanged }: KeyCardProps) {
  const { id, name } = apiKey;
  const save = async (form: HTMLFormElement): Promise<void> => {
    await client().keys.update(id, changeIn(form, apiKey));
    say('The limits were changed.');
    onChanged();
  };
  const own = limits.flatMap(([field, label]) => (apiKey[field] === null ? [] : [`${label}: ${apiKey[field]}`]));
  return (
    <details class="more">
      <summary>Limits: {own.join(', ') || 'those of the service'}</summary>
      <form class="limits" aria-label={`Limits of ${name}`} onSubmit={submitting(save)}>
        {limits.map(([field, label]) => (
          <TextField
            key={field}
            id={`${field}-${id}`}
            name={field}
            label={label}
            type="number"
            min={field === 'retention_days' ? 1 : 0}
            step={1}
            defaultValue={String(apiKey[field] ?? '')}
          />
        ))}
        <SelectField
          id={`filter-${id}`}
          name="filter"
          label="Flagged pictures"
          choices={filters}
          value={apiKey.filter}
        />
        <p class="hint">Empty: what the service has for all keys; for the days: kept for ever. 0: no limit.</p>
        <button class="button">Save</button>
      </form>
    </details>
  );
}
