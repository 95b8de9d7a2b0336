import { useEffect, useState } from 'preact/hooks';
import { draft, fill, schedulers } from '../draw/draft';
import { serviceDefaults } from '../drawings/service-rules';
import { areModelsLoaded, choiceOf, loadModels } from '../models/models';
import { takesFiles } from '../ui/drop';
import { attempt, say } from '../ui/notices';
import { go } from '../ui/route';
import { readPngParameters } from './png-parameters';

/** No picture of the service is larger: 4096 pixels square, uncompressed. */
const largestBytes = 70_000_000;

/** Puts the settings of a picture into the form, and names those that no longer exist here. */
export async function restoreFrom(file: File): Promise<void> {
  const found = file.size > largestBytes ? undefined : readPngParameters(new Uint8Array(await file.arrayBuffer()));
  if (!found)
    return say('This file has no settings of Darkroom in it. Only PNG files that it has drawn have them.', true);
  if (!areModelsLoaded.value) await attempt(loadModels);
  const { isOfFinetune, model, scheduler, ...settings } = found;
  fill({
    ...settings,
    negative_prompt: settings.negative_prompt ?? '',
    num_generations: 1,
    finetunes: [],
    control: [],
    references: [],
    strength: serviceDefaults.strength,
    scheduler: schedulers.find((name) => name === scheduler),
    model: choiceOf(model) ? model : draft.value.model,
  });
  go('');
  if (isOfFinetune)
    say('The settings of the picture are in the form, but a Fine-Tune drew it: choose the Fine-Tune under Model.');
  else
    say(
      choiceOf(model)
        ? 'The settings of the picture are in the form.'
        : `The settings of the picture are in the form, but its model ${model} is not installed: another one will draw.`,
    );
}

const hasFiles = (event: DragEvent): boolean => event.dataTransfer?.types.includes('Files') ?? false;
/** These elements take files themselves. */
const isElsewhere = (event: DragEvent): boolean =>
  event.target instanceof Element && event.target.closest(`[${takesFiles}]`) !== null;

/** Takes a picture that is dropped anywhere on the page. */
export function DropTarget() {
  const [isOver, setOver] = useState(false);
  useEffect(() => {
    const over = (event: DragEvent): void => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setOver(!isElsewhere(event));
    };
    const leave = (event: DragEvent): void => {
      if (event.relatedTarget === null) setOver(false);
    };
    const drop = (event: DragEvent): void => {
      setOver(false);
      if (!hasFiles(event)) return;
      event.preventDefault();
      const file = event.dataTransfer?.files[0];
      if (file && !isElsewhere(event)) void restoreFrom(file);
    };
    addEventListener('dragover', over);
    addEventListener('dragleave', leave);
    addEventListener('drop', drop);
    return () => {
      removeEventListener('dragover', over);
      removeEventListener('dragleave', leave);
      removeEventListener('drop', drop);
    };
  }, []);
  return isOver ? (
    <div class="drop-veil" aria-hidden="true">
      Drop a PNG made here to get its settings back
    </div>
  ) : null;
}
