import { Button } from '../ui/buttons';
import { Range } from '../ui/range';
import type { Box } from './crop';

interface RectangleFieldsProps {
  rectangle: Box;
  onChange: (rectangle: Box) => void;
  onAdd: (isErasing: boolean) => void;
}

/** A rectangle for those who do not paint: the keyboard moves its edges, and it is shown meanwhile. */
export function RectangleFields({ rectangle, onChange, onAdd }: RectangleFieldsProps) {
  const { left, top, width, height } = rectangle;
  const edges = [
    { label: 'From the left', value: left, set: (to: number) => ({ left: to, width: Math.min(width, 100 - to) }) },
    { label: 'From the top', value: top, set: (to: number) => ({ top: to, height: Math.min(height, 100 - to) }) },
    { label: 'Width', value: width, set: (to: number) => ({ width: Math.min(to, 100 - left) }) },
    { label: 'Height', value: height, set: (to: number) => ({ height: Math.min(to, 100 - top) }) },
  ];
  return (
    <details class="rectangle-fields">
      <summary>Rectangle</summary>
      {edges.map(({ label, value, set }) => (
        <Range
          key={label}
          label={label}
          min={label.startsWith('From') ? 0 : 1}
          max={label.startsWith('From') ? 99 : 100}
          value={value}
          unit=" %"
          onChange={(to) => onChange({ ...rectangle, ...set(to) })}
        />
      ))}
      <div class="actions">
        <Button onClick={() => onAdd(false)}>Repaint it</Button>
        <Button kind="is-quiet" onClick={() => onAdd(true)}>
          Keep it
        </Button>
      </div>
    </details>
  );
}
