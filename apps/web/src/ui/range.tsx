import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';

interface RangeProps {
  label: string;
  min: number;
  max: number;
  step?: number;
  value: number;
  unit?: string;
  disabled?: boolean;
  /** Shown before the value. */
  beside?: ComponentChildren;
  /** Called while it moves. */
  onChange?: (value: number) => void;
  /** Called when it is let go. */
  onRelease?: (value: number) => void;
}

/** A slider with its label and its value above. */
export function Range({
  label,
  min,
  max,
  step = 1,
  value,
  unit = '',
  disabled,
  beside,
  onChange,
  onRelease,
}: RangeProps) {
  const id = useId();
  return (
    <div class="slider">
      <label for={id}>{label}</label>
      <output for={id}>
        {beside}
        <b>
          {value}
          {unit}
        </b>
      </output>
      <input
        id={id}
        type="range"
        {...{ min, max, step, value, disabled }}
        onInput={({ currentTarget }) => onChange?.(Number(currentTarget.value))}
        onChange={({ currentTarget }) => onRelease?.(Number(currentTarget.value))}
      />
    </div>
  );
}
