import type { ButtonHTMLAttributes } from 'preact';
import { Icon } from './icons';
import type { IconName } from './icons';

interface IconButtonProps extends ButtonHTMLAttributes {
  icon: IconName;
  /** What it does, for those who do not see the icon. */
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
