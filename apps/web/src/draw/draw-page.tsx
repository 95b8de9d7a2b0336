import { Gallery } from '../gallery/gallery';
import { PromptForm } from './prompt-form';
import { Stage } from './stage';

export function DrawPage() {
  return (
    <div class="draw-page">
      <PromptForm />
      <div class="results">
        <Stage />
        <Gallery />
      </div>
    </div>
  );
}
