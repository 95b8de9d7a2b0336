import type { ComponentChildren } from 'preact';

interface SegmentsProps<T extends string> {
  /** The name of the radio buttons, one for each group. */
  name: string;
  label: string;
  options: readonly T[];
  value: T;
  onChange: (option: T) => void;
  /** What an option shows. */
  show: (option: T) => ComponentChildren;
  isSmall?: boolean;
}

/** One of a few, side by side. */
export function Segments<T extends string>({ name, label, options, value, onChange, show, isSmall }: SegmentsProps<T>) {
  return (
    <div class={isSmall ? 'segments is-small' : 'segments'} role="radiogroup" aria-label={label}>
      {options.map((option) => (
        <label key={option}>
          <input
            type="radio"
            name={name}
            class="visually-hidden"
            checked={value === option}
            onChange={() => onChange(option)}
          />
          <span>{show(option)}</span>
        </label>
      ))}
    </div>
  );
}
