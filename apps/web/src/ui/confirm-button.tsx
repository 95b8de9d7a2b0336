import { useState } from 'preact/hooks';
import { texts } from '../texts';
import { Icon } from './icons';

interface ConfirmButtonProps {
  label: string;
  question: string;
  onConfirm: () => void;
  /** Shows only the icon, and has the label for screen readers. */
  isSmall?: boolean;
}

/** A button for what cannot be undone: it asks once, in its own place. */
export function ConfirmButton({ label, question, onConfirm, isSmall = false }: ConfirmButtonProps) {
  const [isAsking, setAsking] = useState(false);
  if (!isAsking)
    return (
      <button
        type="button"
        class={isSmall ? 'icon-button' : 'button is-quiet'}
        aria-label={isSmall ? label : undefined}
        title={isSmall ? label : undefined}
        onClick={() => setAsking(true)}
      >
        <Icon name="trash" />
        {!isSmall && label}
      </button>
    );
  const answer = (isYes: boolean): void => {
    setAsking(false);
    if (isYes) onConfirm();
  };
  return (
    <span class="confirm" role="group" aria-label={question}>
      <span>{question}</span>
      <button type="button" class="button is-danger" autoFocus onClick={() => answer(true)}>
        {texts.viewer.yes}
      </button>
      <button type="button" class="button is-quiet" onClick={() => answer(false)}>
        {texts.viewer.no}
      </button>
    </span>
  );
}
