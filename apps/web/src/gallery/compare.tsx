import { drawings } from '../drawings/store';
import { Dialog } from '../ui/dialog';
import { Facts } from '../ui/card';
import { IconButton } from '../ui/buttons';
import { DrawingFrame } from './drawing-frame';
import { factsOf } from './facts';
import { compared, type Shot } from './viewer-state';

const close = (): void => void (compared.value = undefined);

/** Two pictures side by side, and what differs between them. */
export function Compare() {
  const pair = compared.value;
  if (!pair) return null;
  const [first, second] = pair.map(valuesOf);
  if (!first || !second) return null;
  return (
    <Dialog label="Compare" className="compare" onClose={close}>
      <IconButton icon="close" kind="is-close" label="Close" onClick={close} />
      <h2>Compare</h2>
      <div class="compare-sides">
        <Side shot={pair[0]} values={first} others={second} />
        <Side shot={pair[1]} values={second} others={first} />
      </div>
    </Dialog>
  );
}

type Values = ReadonlyMap<string, string>;

function valuesOf({ id, index }: Shot): Values | undefined {
  const drawing = drawings.value.get(id);
  if (!drawing) return undefined;
  const facts = [{ name: 'Prompt', value: drawing.prompt }, ...factsOf(drawing, index)];
  return new Map(facts.filter(({ value }) => value !== '').map(({ name, value }) => [name, value]));
}

function Side({ shot, values, others }: { shot: Shot; values: Values; others: Values }) {
  const drawing = drawings.value.get(shot.id);
  if (!drawing) return null;
  return (
    <section class="compare-side">
      <DrawingFrame drawing={drawing} index={shot.index} isLarge />
      <Facts facts={[...values].map(([name, value]) => ({ name, value, isOther: others.get(name) !== value }))} />
    </section>
  );
}
