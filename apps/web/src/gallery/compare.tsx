import { useState } from 'preact/hooks';
import { wholeOf } from '../drawings/store';
import { useWhole } from '../drawings/use-whole';
import { BeforeAfter } from '../ui/before-after';
import { Dialog } from '../ui/dialog';
import { Facts } from '../ui/card';
import { IconButton } from '../ui/buttons';
import { Segments } from '../ui/fields';
import { DrawingFrame } from './drawing-frame';
import { factsOf } from './facts';
import { compared, type Shot } from './viewer-state';

const close = (): void => void (compared.value = undefined);

const views = ['Side by side', 'One over the other'] as const;

/** Two pictures, and what differs between them. */
export function Compare() {
  const pair = compared.value;
  useWhole(pair?.[0].id);
  useWhole(pair?.[1].id);
  const [view, setView] = useState<(typeof views)[number]>(views[0]);
  if (!pair) return null;
  const [first, second] = pair.map(valuesOf);
  if (!first || !second) return null;
  return (
    <Dialog label="Compare" className="compare" onClose={close}>
      <IconButton icon="close" kind="is-close" label="Close" onClick={close} />
      <h2>Compare</h2>
      <Segments
        name="compare"
        label="How they are shown"
        options={views}
        value={view}
        onChange={setView}
        show={(name) => name}
        isSmall
      />
      {view === views[1] && <Overlaid pair={pair} />}
      <div class="compare-sides">
        <Side shot={pair[0]} values={first} others={second} hasPicture={view === views[0]} />
        <Side shot={pair[1]} values={second} others={first} hasPicture={view === views[0]} />
      </div>
    </Dialog>
  );
}

function Overlaid({ pair }: { pair: readonly [Shot, Shot] }) {
  const [before, after] = pair.map(({ id, index }) => {
    const { images, prompt } = wholeOf(id)!;
    return { url: images[index], alt: prompt };
  });
  if (!before.url || !after.url) return <p class="hint">One of them has no picture.</p>;
  return <BeforeAfter before={before} after={after} />;
}

type Values = ReadonlyMap<string, string>;

function valuesOf({ id, index }: Shot): Values | undefined {
  const drawing = wholeOf(id);
  if (!drawing) return undefined;
  const facts = [{ name: 'Prompt', value: drawing.prompt }, ...factsOf(drawing, index)];
  return new Map(facts.filter(({ value }) => value !== '').map(({ name, value }) => [name, value]));
}

interface SideProps {
  shot: Shot;
  values: Values;
  others: Values;
  hasPicture: boolean;
}

function Side({ shot, values, others, hasPicture }: SideProps) {
  const drawing = wholeOf(shot.id);
  if (!drawing) return null;
  return (
    <section class="compare-side">
      {hasPicture && <DrawingFrame drawing={drawing} index={shot.index} isLarge />}
      <Facts facts={[...values].map(([name, value]) => ({ name, value, isOther: others.get(name) !== value }))} />
    </section>
  );
}
