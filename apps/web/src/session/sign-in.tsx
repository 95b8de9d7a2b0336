import { useState } from 'preact/hooks';
import { DarkroomError } from '../service/client';
import { texts } from '../texts';
import { explain } from '../ui/notices';
import { signIn, signInReason } from './session';

const reasons = { revoked: texts.signIn.revoked, code: texts.signIn.code, away: texts.signIn.away };

export function SignIn() {
  const [error, setError] = useState('');
  const [isWorking, setWorking] = useState(false);
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget as HTMLFormElement);
    const key = fields.get('key');
    setWorking(true);
    setError('');
    await signIn(typeof key === 'string' ? key.trim() : '', fields.has('keep')).catch((reason: unknown) => {
      const isWrong = reason instanceof DarkroomError && reason.status === 401;
      setError(isWrong ? texts.signIn.wrong : explain(reason));
      setWorking(false);
    });
  };
  const reason = error || (signInReason.value ? reasons[signInReason.value] : '');
  return (
    <main class="sign-in">
      <span class="lamp is-large" aria-hidden="true" />
      <h1>{texts.name}</h1>
      <p class="lead">{texts.signIn.lead}</p>
      <form onSubmit={(event) => void submit(event)}>
        <label for="key">{texts.signIn.key}</label>
        <input
          id="key"
          name="key"
          type="password"
          autocomplete="off"
          spellcheck={false}
          required
          aria-describedby="key-hint"
        />
        <p id="key-hint" class="hint">
          {texts.signIn.keyHint}
        </p>
        <label class="check">
          <input name="keep" type="checkbox" /> {texts.signIn.keep}
        </label>
        <p class="problem" role="alert">
          {reason}
        </p>
        <button class="button is-primary" disabled={isWorking}>
          {isWorking ? texts.signIn.working : texts.signIn.submit}
        </button>
      </form>
    </main>
  );
}
