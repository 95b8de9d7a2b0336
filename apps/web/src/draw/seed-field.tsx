import { texts } from '../texts';
import { Icon } from '../ui/icons';
import { change, draft, newSeed } from './draft';

const largestSeed = 2 ** 32 - 1;

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
        <button
          type="button"
          class="icon-button"
          aria-label={texts.draw.dice}
          title={texts.draw.dice}
          onClick={() => change({ seed: newSeed(), isSeedLocked: true })}
        >
          <Icon name="dice" />
        </button>
        <button
          type="button"
          class="icon-button"
          aria-label={texts.draw.lock}
          title={texts.draw.lock}
          aria-pressed={isSeedLocked}
          onClick={() => change({ isSeedLocked: !isSeedLocked })}
        >
          <Icon name={isSeedLocked ? 'lock' : 'unlock'} />
        </button>
      </div>
    </div>
  );
}
