import { attempt } from './notices';

/** What a form does when it is submitted; why it did not work is said at the edge of the page. */
export function submitting(work: (form: HTMLFormElement) => Promise<void>) {
  return (event: Event & { currentTarget: HTMLFormElement }): void => {
    event.preventDefault();
    const form = event.currentTarget;
    void attempt(() => work(form));
  };
}
