import type { ComponentChildren, InputHTMLAttributes, SelectHTMLAttributes } from 'preact';
import { attempt } from './notices';

/** The trimmed text of a form's field; empty if there is no such field. */
export function textIn(form: HTMLFormElement, name: string): string {
  const value = new FormData(form).get(name);
  return typeof value === 'string' ? value.trim() : '';
}

/** A second click on the button of a form that is being sent does nothing. */
const beingSent = new WeakSet<HTMLFormElement>();

/** Runs work on submit; an error is shown as a notice. */
export function submitting(work: (form: HTMLFormElement) => Promise<void>) {
  return (event: Event & { currentTarget: HTMLFormElement }): void => {
    event.preventDefault();
    const form = event.currentTarget;
    if (beingSent.has(form)) return;
    beingSent.add(form);
    void attempt(() => work(form)).finally(() => beingSent.delete(form));
  };
}

type TextFieldProps = InputHTMLAttributes & { id: string; label: string; hint?: string };

/** An input with its label above and a hint below. */
export function TextField({ id, label, hint, ...rest }: TextFieldProps) {
  return (
    <div>
      <label for={id}>{label}</label>
      <input id={id} autocomplete="off" aria-describedby={hint && `${id}-hint`} {...rest} />
      {hint && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}

/** In their order; one that is disabled cannot be chosen. */
export type Choices = readonly (readonly [value: string, text: string, disabled?: 'disabled'])[];

export function Options({ choices, value }: { choices: Choices; value?: string }) {
  return (
    <>
      {choices.map(([each, text, disabled]) => (
        <option
          key={each}
          value={each}
          selected={value === undefined ? undefined : value === each}
          disabled={disabled !== undefined}
        >
          {text}
        </option>
      ))}
    </>
  );
}

type SelectFieldProps = SelectHTMLAttributes & { id: string; label: string; choices: Choices };

/** A list to choose from with its label above. */
export function SelectField({ id, label, choices, children, ...rest }: SelectFieldProps) {
  return (
    <div>
      <label for={id}>{label}</label>
      <select id={id} {...rest}>
        <Options choices={choices} />
      </select>
      {children}
    </div>
  );
}

interface SegmentsProps<T extends string> {
  /** Name of the radio buttons, unique for each group. */
  name: string;
  label: string;
  options: readonly T[];
  value: T;
  onChange: (option: T) => void;
  show: (option: T) => ComponentChildren;
  isSmall?: boolean;
  /** In rows of three. */
  isGrid?: boolean;
}

/** One of a few, side by side. */
export function Segments<T extends string>(props: SegmentsProps<T>) {
  const { name, label, options, value, onChange, show, isSmall, isGrid } = props;
  return (
    <div
      class={`segments ${isSmall ? 'is-small' : ''} ${isGrid ? 'is-grid' : ''}`}
      role="radiogroup"
      aria-label={label}
    >
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
