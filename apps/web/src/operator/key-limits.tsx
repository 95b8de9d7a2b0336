import type { Key, KeyChange } from '../service/client';
import { client } from '../session/session';
import { texts } from '../texts';
import { textIn } from '../ui/form-text';
import { say } from '../ui/notices';
import { submitting } from '../ui/submitting';

const limits = ['rate_limit_per_minute', 'max_queued', 'max_concurrent', 'max_storage_mb'] as const;

interface KeyLimitsProps {
  apiKey: Key;
  onChanged: () => void;
}

/** What a form says of a key: an empty field stands for the service's own. */
function changeIn(form: HTMLFormElement): KeyChange {
  const count = <W extends string>(name: string, word: W): number | W => {
    const text = textIn(form, name);
    return text === '' ? word : Number(text);
  };
  return {
    rate_limit_per_minute: count('rate_limit_per_minute', 'default'),
    max_queued: count('max_queued', 'default'),
    max_concurrent: count('max_concurrent', 'default'),
    max_storage_mb: count('max_storage_mb', 'default'),
    retention_days: count('retention_days', 'keep'),
  };
}

/** Only what the form changes: somebody else may have changed the rest since it was shown. */
function changed(wanted: KeyChange, apiKey: Key): KeyChange {
  const isNew = ([name, value]: [string, unknown]): boolean =>
    (typeof value === 'number' ? value : null) !== apiKey[name as keyof Key];
  return Object.fromEntries(Object.entries(wanted).filter(isNew));
}

/** The limits of a key, which can be changed. */
export function KeyLimits({ apiKey, onChanged }: KeyLimitsProps) {
  const { id, name } = apiKey;
  const save = async (form: HTMLFormElement): Promise<void> => {
    await client().keys.update(id, changed(changeIn(form), apiKey));
    say(texts.keys.saved);
    onChanged();
  };
  return (
    <details class="more">
      <summary>{summaryOf(apiKey)}</summary>
      <form class="limits" aria-label={texts.keys.limitsOf(name)} onSubmit={submitting(save)}>
        {limits.map((limit) => (
          <Field key={limit} id={`${limit}-${id}`} name={limit} label={texts.keys.limit[limit]} value={apiKey[limit]} />
        ))}
        <Field
          id={`retention-${id}`}
          name="retention_days"
          label={texts.keys.retention}
          value={apiKey.retention_days}
          min={1}
        />
        <p class="hint">{texts.keys.limitHint}</p>
        <button class="button">{texts.keys.save}</button>
      </form>
    </details>
  );
}

/** The limits that the key has of its own. */
function summaryOf(apiKey: Key): string {
  const own = [
    ...limits.map((limit) => ({ label: texts.keys.limit[limit], value: apiKey[limit] })),
    { label: texts.keys.retention, value: apiKey.retention_days },
  ].flatMap(({ label, value }) => (value === null ? [] : [`${label}: ${value}`]));
  return own.length === 0 ? texts.keys.ownLimits : texts.keys.someLimits(own.join(', '));
}

interface FieldProps {
  id: string;
  name: string;
  label: string;
  value: number | null;
  min?: number;
}

function Field({ id, name, label, value, min = 0 }: FieldProps) {
  return (
    <div>
      <label for={id}>{label}</label>
      <input id={id} name={name} type="number" min={min} step={1} defaultValue={value === null ? '' : String(value)} />
    </div>
  );
}
