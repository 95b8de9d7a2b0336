import { texts } from '../texts';
import { change, draft, drawnBy, drawnWith } from './draft';

/** The bundled demonstration model draws coloured shapes, and nothing else well. */
const demonstrationModel = 'shapes';

/** Prompts that suit what draws. */
function ideas(): readonly string[] {
  const served = drawnBy.value?.served.name;
  const found = served === demonstrationModel || served === undefined ? texts.ideas.shapes : texts.ideas.photographs;
  const name = drawnWith.value?.name;
  return name === undefined ? found : texts.ideas.shapes.map((idea) => idea.replace(/^(an?) \w+ \w+/, `a ${name}`));
}

export function Chips() {
  return (
    <div class="chips" role="group" aria-label={texts.draw.chips}>
      {ideas().map((idea) => (
        <button
          key={idea}
          type="button"
          class="chip"
          aria-pressed={draft.value.prompt === idea}
          onClick={() => change({ prompt: idea })}
        >
          {idea}
        </button>
      ))}
    </div>
  );
}
