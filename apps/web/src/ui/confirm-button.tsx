import { useState } from 'preact/hooks';
import { texts } from '../texts';
import type { IconName } from './icons';
import { Icon } from './icons';

interface ConfirmButtonProps {
  label: string;
  question: string;
  onConfirm: () => void;
  icon?: IconName;
  /** What the two answers are called; those of a deletion, if it is left out. */
  answers?: { yes: string; no: string };
  /** What screen readers say in place of the label, where it stands several times on a page. */
  fullLabel?: string;
  /** Shows only the icon, and has the label for screen readers. */
  isSmall?: boolean;
}

/** A button for what cannot be undone: it asks once, in its own place. */
export function ConfirmButton({ label, question, onConfirm, isSmall = false, ...rest }: ConfirmButtonProps) {
  const { icon = 'trash', answers = { yes: texts.viewer.yes, no: texts.viewer.no }, fullLabel } = rest;
  const [isAsking, setAsking] = useState(false);
  if (!isAsking)
    return (
      <button
        type="button"
        class={isSmall ? 'icon-button' : 'button is-quiet'}
        aria-label={fullLabel ?? (isSmall ? label : undefined)}
        title={isSmall ? label : undefined}
        onClick={() => setAsking(true)}
      >
        <Icon name={icon} />
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
        {answers.yes}
      </button>
      <button type="button" class="button is-quiet" onClick={() => answer(false)}>
        {answers.no}
      </button>
    </span>
  );
}
