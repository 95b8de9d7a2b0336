import { lengths } from '../drawings/service-rules';
import { client } from '../session/session';
import { texts } from '../texts';
import { textIn } from '../ui/form-text';
import { submitting } from '../ui/submitting';
import type { Secrets } from './secrets';

const scopes = ['write', 'read', 'admin'] as const;

/** Makes a key, and hands on its secrets. */
export function NewKey({ onMade }: { onMade: (secrets: Secrets) => void }) {
  const create = async (form: HTMLFormElement): Promise<void> => {
    const scope = scopes.find((each) => each === textIn(form, 'scope')) ?? 'write';
    const sandbox = new FormData(form).has('sandbox');
    const made = await client().keys.create({ name: textIn(form, 'name'), scopes: [scope], sandbox });
    form.reset();
    onMade({
      name: made.name,
      token: made.token ?? '',
      ...(made.webhook_secret !== null && { webhookSecret: made.webhook_secret }),
    });
  };
  return (
    <form class="panel inline-form" aria-label={texts.keys.new} onSubmit={submitting(create)}>
      <div>
        <label for="key-name">{texts.keys.name}</label>
        <input id="key-name" name="name" required maxLength={lengths.name} autocomplete="off" />
      </div>
      <div>
        <label for="key-scope">{texts.keys.scope}</label>
        <select id="key-scope" name="scope">
          {scopes.map((scope) => (
            <option key={scope} value={scope}>
              {texts.keys.scopes[scope]}
            </option>
          ))}
        </select>
        <label class="check">
          <input name="sandbox" type="checkbox" /> {texts.keys.sandbox}
        </label>
      </div>
      <button class="button is-primary">{texts.keys.create}</button>
    </form>
  );
}
