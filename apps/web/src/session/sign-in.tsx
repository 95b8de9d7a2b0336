import { useState } from 'preact/hooks';
import { DarkroomError } from '../service/client';
import { explain } from '../ui/notices';
import { signIn, signInReason } from './session';

const reasons = {
  revoked: 'Your key no longer works: it was revoked or changed. Sign in with another one.',
  code: 'The code in this address was used before or has expired. Sign in with a key; each start of the service prints a new code.',
  away: 'The service could not be reached. Reload the page to use the code in this address.',
};

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
      setError(isWrong ? 'The service does not know this key, or it was revoked.' : explain(reason));
      setWorking(false);
    });
  };
  const reason = error || (signInReason.value ? reasons[signInReason.value] : '');
  return (
    <main class="sign-in">
      <span class="lamp is-large" aria-hidden="true" />
      <h1>Darkroom</h1>
      <p class="lead">Pictures from words, drawn on your own machine.</p>
      <form onSubmit={(event) => void submit(event)}>
        <label for="key">API key</label>
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
          The first one is in the file api-key of the data folder; npm run keys makes more.
        </p>
        <label class="check">
          <input name="keep" type="checkbox" /> Keep me signed in until this tab is closed
        </label>
        <p class="problem" role="alert">
          {reason}
        </p>
        <button class="button is-primary" disabled={isWorking}>
          {isWorking ? 'Signing in …' : 'Sign in'}
        </button>
      </form>
    </main>
  );
}
