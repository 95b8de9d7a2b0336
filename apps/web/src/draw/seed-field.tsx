import { largestSeed } from '../drawings/service-rules';
import { texts } from '../texts';
import { IconButton } from '../ui/icon-button';
import { change, draft, newSeed } from './draft';

export function SeedField() {
  const { seed, isSeedLocked } = draft.value;
  const write = (text: string): void => {
    const value = Math.floor(Number(text));
    if (text !== '' && value >= 0 && value <= largestSeed) change({ seed: value, isSeedLocked: true });
  };
  return (
    <div>
      <label for="seed">{texts.draw.seed}</label>
      <div class="seed">
        <input
          id="seed"
          type="number"
          min={0}
          max={largestSeed}
          value={seed}
          onInput={(event) => write(event.currentTarget.value)}
        />
        <IconButton
          icon="dice"
          label={texts.draw.dice}
          title={texts.draw.dice}
          onClick={() => change({ seed: newSeed(), isSeedLocked: true })}
        />
        <IconButton
          icon={isSeedLocked ? 'lock' : 'unlock'}
          label={texts.draw.lock}
          title={texts.draw.lock}
          aria-pressed={isSeedLocked}
          onClick={() => change({ isSeedLocked: !isSeedLocked })}
        />
      </div>
    </div>
  );
}
