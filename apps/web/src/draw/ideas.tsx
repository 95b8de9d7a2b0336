import { change, draft, drawnBy, drawnWith } from './draft';

/** The bundled model draws only coloured shapes well. */
const demonstrationModel = 'shapes';

const shapes = [
  'a red circle on a blue background',
  'a yellow star on a gradient purple background',
  'a cyan square left of a red triangle',
  'an orange diamond on a dotted cyan background',
  'a pink heart on a striped black background',
];
const photographs = [
  'a lighthouse in a storm, long exposure, black and white',
  'a red fox in fresh snow, morning light',
  'an old library with a spiral staircase, dust in the sun',
  'a bowl of lemons on a blue table, still life',
];

function ideas(): readonly string[] {
  const served = drawnBy.value?.served.name;
  const found = served === demonstrationModel || served === undefined ? shapes : photographs;
  const name = drawnWith.value?.name;
  return name === undefined ? found : shapes.map((idea) => idea.replace(/^(an?) \w+ \w+/, `a ${name}`));
}

/** Prompts to begin with. */
export function Ideas() {
  return (
    <div class="chips" role="group" aria-label="Ideas">
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
