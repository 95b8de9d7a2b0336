import type { ButtonHTMLAttributes } from 'preact';
import { useState } from 'preact/hooks';

const paths = {
  dice: 'M4 4h16v16H4zM8.5 8.5h.01M15.5 8.5h.01M12 12h.01M8.5 15.5h.01M15.5 15.5h.01',
  lock: 'M6 11h12v9H6zM9 11V8a3 3 0 0 1 6 0v3',
  unlock: 'M6 11h12v9H6zM9 11V7a3 3 0 0 1 5.8-1',
  close: 'M6 6l12 12M18 6L6 18',
  left: 'M15 5l-7 7 7 7',
  right: 'M9 5l7 7-7 7',
  plus: 'M12 5v14M5 12h14',
  minus: 'M5 12h14',
  download: 'M12 4v11M7 11l5 5 5-5M5 20h14',
  trash: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13',
  vary: 'M4 8h4l8 8h4M16 4l4 4-4 4M4 16h4l2-2M14 10l2-2h4M16 12l4 4-4 4',
  reuse: 'M5 12a7 7 0 1 1 2 5M5 19v-5h5',
  compare: 'M4 5h7v14H4zM13 5h7v14h-7z',
  undo: 'M8 5L4 9l4 4M4 9h9a6 6 0 0 1 0 12H8',
  style: 'M4 4h7v7H4zM13 4h7v7h-7zM4 13h7v7H4zM16.5 13v7M13 16.5h7',
  upload: 'M12 20V8M7 12l5-5 5 5M5 4h14',
  brush: 'M14 4l6 6-8 8H6v-6zM4 20h16',
  picture: 'M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4',
} as const;

type IconName = keyof typeof paths;

/** An icon beside a text, or in a labelled button. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={paths[name]} />
    </svg>
  );
}

interface ButtonProps extends ButtonHTMLAttributes {
  /** `is-quiet`, `is-primary` or `is-danger`. */
  kind?: string;
  icon?: IconName;
}

/** A button with a text, and an icon before it. */
export function Button({ kind, icon, children, ...rest }: ButtonProps) {
  return (
    <button type="button" class={kind ? `button ${kind}` : 'button'} {...rest}>
      {icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

/** Saves a picture. */
export function Download({ url, kind = '' }: { url: string; kind?: string }) {
  return (
    <a class={`button ${kind}`.trim()} href={url} download={url.slice(url.lastIndexOf('/') + 1)}>
      <Icon name="download" /> Download
    </a>
  );
}

interface IconButtonProps extends ButtonHTMLAttributes {
  icon: IconName;
  /** For people who do not see the icon. */
  label: string;
  /** More classes, such as `is-close`. */
  kind?: string;
}

/** A button that is only an icon. */
export function IconButton({ icon, label, kind, ...rest }: IconButtonProps) {
  return (
    <button type="button" class={kind ? `icon-button ${kind}` : 'icon-button'} aria-label={label} {...rest}>
      <Icon name={icon} />
    </button>
  );
}

interface ConfirmButtonProps {
  label: string;
  question: string;
  onConfirm: () => void;
  icon?: IconName;
  /** By default those of a deletion. */
  answers?: { yes: string; no: string };
  /** For screen readers, where the label stands several times on a page. */
  fullLabel?: string;
  /** Only the icon; the label is for screen readers. */
  isSmall?: boolean;
}

/** For what cannot be undone: it asks once, in its own place. */
export function ConfirmButton({ label, question, onConfirm, isSmall = false, ...rest }: ConfirmButtonProps) {
  const { icon = 'trash', answers = { yes: 'Delete', no: 'Keep' }, fullLabel } = rest;
  const [isAsking, setAsking] = useState(false);
  const ask = (): void => setAsking(true);
  if (!isAsking)
    return isSmall ? (
      <IconButton icon={icon} label={label} title={label} onClick={ask} />
    ) : (
      <Button kind="is-quiet" icon={icon} aria-label={fullLabel} onClick={ask}>
        {label}
      </Button>
    );
  const answer = (isYes: boolean): void => {
    setAsking(false);
    if (isYes) onConfirm();
  };
  return (
    <span class="confirm" role="group" aria-label={question}>
      <span>{question}</span>
      <Button kind="is-danger" autoFocus onClick={() => answer(true)}>
        {answers.yes}
      </Button>
      <Button kind="is-quiet" onClick={() => answer(false)}>
        {answers.no}
      </Button>
    </span>
  );
}
