import { lengths } from '../drawings/service-rules';
import { modelChoices } from '../models/models';
import { client } from '../session/session';
import { texts } from '../texts';
import { textIn } from '../ui/form-text';
import { submitting } from '../ui/submitting';
import { loadFinetunes } from './finetunes';

async function create(form: HTMLFormElement): Promise<void> {
  const text = (name: string): string => textIn(form, name);
  await client().finetunes.create({
    name: text('name'),
    ...(text('token') !== '' && { token: text('token') }),
    ...(text('title') !== '' && { title: text('title') }),
    ...(text('model') !== '' && { model: text('model') }),
  });
  form.reset();
  await loadFinetunes();
}

export function NewFinetune() {
  return (
    <form class="panel inline-form" aria-label={texts.finetunes.new} onSubmit={submitting(create)}>
      <div>
        <label for="finetune-name">{texts.finetunes.name}</label>
        <input
          id="finetune-name"
          name="name"
          required
          maxLength={lengths.name}
          autocomplete="off"
          aria-describedby="finetune-name-hint"
        />
        <p class="hint" id="finetune-name-hint">
          {texts.finetunes.nameHint}
        </p>
      </div>
      <div>
        <label for="finetune-token">{texts.finetunes.tokenField}</label>
        <input
          id="finetune-token"
          name="token"
          maxLength={lengths.token}
          autocomplete="off"
          aria-describedby="finetune-token-hint"
        />
        <p class="hint" id="finetune-token-hint">
          {texts.finetunes.tokenHint}
        </p>
      </div>
      <div>
        <label for="finetune-title">{texts.finetunes.titleField}</label>
        <input id="finetune-title" name="title" maxLength={lengths.name} autocomplete="off" />
      </div>
      <div>
        <label for="finetune-model">{texts.finetunes.model}</label>
        <select id="finetune-model" name="model">
          {modelChoices.value.map(({ name, served }) => (
            <option key={name} value={name}>
              {texts.draw.drawnBy(name, served.name)}
            </option>
          ))}
        </select>
      </div>
      <button class="button is-primary">{texts.finetunes.create}</button>
    </form>
  );
}
