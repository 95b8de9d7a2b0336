import type { Drawing } from '../drawings/drawing';
import { drawingOfPrompt } from '../drawings/drawing';
import { showNew } from '../drawings/feed';
import { stageIds } from '../drawings/store';
import { client } from '../session/session';
import { texts } from '../texts';
import { say } from '../ui/notices';
import { go } from '../ui/route';

/**
 * Applies a Style, or all Styles of a Collection, to a Fine-Tune, and shows the pictures as they form.
 * @throws DarkroomError
 */
export async function applyStyles(finetuneId: string, id: string): Promise<void> {
  const made = await client().finetunes.applyStyles(finetuneId, [{ id }]);
  say(texts.collections.applied(made.length));
  stageIds.value = made.map((prompt) => prompt.id);
  go('');
  showNew(await wholePrompts(finetuneId, new Set(made.map((prompt) => prompt.id))));
}

/** The response has only parts of the Prompts; they are among the newest of the Fine-Tune. */
async function wholePrompts(finetuneId: string, ids: ReadonlySet<string>): Promise<Drawing[]> {
  const found: Drawing[] = [];
  for await (const page of client().prompts.pages(finetuneId)) {
    const ours = page.filter(({ id }) => ids.has(id));
    found.push(...ours.map((prompt) => drawingOfPrompt(prompt, finetuneId)));
    // Behind a page that has none are older ones only.
    if (found.length === ids.size || (found.length > 0 && ours.length === 0)) break;
  }
  return found;
}
