import { useId } from 'preact/hooks';

interface RangeProps {
  label: string;
  min: number;
  max: number;
  step?: number;
  value: number;
  unit?: string;
  onChange: (value: number) => void;
}

/** A slider with its label and its value above. */
export function Range({ label, min, max, step = 1, value, unit = '', onChange }: RangeProps) {
  const id = useId();
  return (
    <div class="slider">
      <label for={id}>{label}</label>
      <output for={id}>
        <b>
          {value}
          {unit}
        </b>
      </output>
      <input
        id={id}
        type="range"
        {...{ min, max, step, value }}
        onInput={({ currentTarget }) => onChange(Number(currentTarget.value))}
      />
    </div>
  );
}
