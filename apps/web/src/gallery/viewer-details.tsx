import { useState } from 'preact/hooks';
import type { Drawing } from '../drawings/drawing';
import { serviceUrl } from '../service/address';
import { texts } from '../texts';
import { Facts } from '../ui/facts';
import { Segments } from '../ui/segments';
import { copy } from './actions';
import { factsOf } from './facts';
import type { Language } from './snippets';
import { languages, snippetOf } from './snippets';

interface ViewerDetailsProps {
  drawing: Drawing;
  index: number;
}

export function ViewerDetails({ drawing, index }: ViewerDetailsProps) {
  return (
    <>
      <h2 class="viewer-prompt">{drawing.prompt}</h2>
      {drawing.images.length > 1 && <p class="hint">{texts.viewer.image(index + 1, drawing.images.length)}</p>}
      <Facts facts={factsOf(drawing, index).filter(({ isLong }) => !isLong || drawing.negativePrompt !== null)} />
      <Code drawing={drawing} />
    </>
  );
}

function Code({ drawing }: { drawing: Drawing }) {
  const [language, setLanguage] = useState<Language>('curl');
  const text = snippetOf(language, drawing, serviceUrl);
  return (
    <div class="code">
      <div class="code-head">
        <span>{texts.viewer.code}</span>
        <Segments
          name="language"
          label={texts.viewer.code}
          options={languages}
          value={language}
          onChange={setLanguage}
          show={(name) => name}
          isSmall
        />
      </div>
      <pre tabIndex={0} aria-label={language}>
        {text}
      </pre>
      <button type="button" class="button is-quiet" onClick={() => void copy(text)}>
        {texts.viewer.copy}
      </button>
    </div>
  );
}
