import { sessionSignal } from '../session/session';
import { DarkroomError } from '../service/client';

interface Notice {
  id: number;
  text: string;
  isError: boolean;
}

const shownMs = 6_000;
/** An error takes longer to read and to act on. */
const errorShownMs = 30_000;
const maxNotices = 4;
const notices = sessionSignal<readonly Notice[]>(() => []);
let lastId = 0;

/** Shows a notice, also to screen readers. */
export function say(text: string, isError = false): void {
  const id = ++lastId;
  notices.value = [...notices.value.filter((notice) => notice.text !== text), { id, text, isError }].slice(-maxNotices);
  setTimeout(() => dismiss(id), isError ? errorShownMs : shownMs);
}

function dismiss(id: number): void {
  notices.value = notices.value.filter((notice) => notice.id !== id);
}

/** An error in the service's own words. */
export function explain(error: unknown): string {
  if (!(error instanceof DarkroomError)) return 'Something went wrong.';
  if (error.status === 0) return 'The service does not answer.';
  const fields = error.errors.map(({ message, pointer }) => `${pointer?.replace(/^\//, '') ?? ''} ${message}`.trim());
  return error.message || fields.join('. ') || 'Something went wrong.';
}

/** Runs an action of the user, and says why it failed. */
export async function attempt(action: () => Promise<void>): Promise<void> {
  try {
    await action();
  } catch (error) {
    // The sign-in form says so itself.
    if (error instanceof DarkroomError && error.status === 401) return;
    say(explain(error), true);
  }
}

export function Notices() {
  return (
    <div class="notices" role="region" aria-label="Messages" aria-live="polite">
      {notices.value.map(({ id, text, isError }) => (
        <div key={id} class={`notice ${isError ? 'is-error' : ''}`} role={isError ? 'alert' : undefined}>
          <span>{text}</span>
          <button type="button" class="icon-button" aria-label="Dismiss" onClick={() => dismiss(id)}>
            ✕
          </button>
        </div>
      ))}
    </div>
  );
}
