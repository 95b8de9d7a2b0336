import { attempt } from './notices';

/** Forms that are being sent: a second click on their button does nothing. */
const beingSent = new WeakSet<HTMLFormElement>();

/** What a form does when it is submitted; why it did not work is said at the edge of the page. */
export function submitting(work: (form: HTMLFormElement) => Promise<void>) {
  return (event: Event & { currentTarget: HTMLFormElement }): void => {
    event.preventDefault();
    const form = event.currentTarget;
    if (beingSent.has(form)) return;
    beingSent.add(form);
    void attempt(() => work(form)).finally(() => beingSent.delete(form));
  };
}
